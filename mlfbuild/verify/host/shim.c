/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
{# The C file between ctypes and a module, see shim.py. #}
{# The structs of TVM's interface contain one pointer per tensor and nothing else, so an array of pointers has the same
   layout. #}
{% macro structs() %}
{% for kind, tensors in [("inputs", module.inputs), ("outputs", module.outputs)] %}
    struct {{ prefix }}_{{ kind }} its_{{ kind }};
    memcpy(&its_{{ kind }}, {{ kind }}, {{ tensors | length }} * sizeof(void *));
{% endfor %}
{% endmacro %}
{# Tensors in the pools: inputs are copied in before the call. #}
{% macro mapped() %}
{% for kind in ["inputs", "outputs"] %}
    struct {{ prefix }}_{{ kind }} its_{{ kind }} = {{ prefix }}_map_{{ kind }}(&pools);
{% endfor %}
{% for tensor in module.inputs %}
    memcpy(its_inputs.{{ tensor.name | in_c }}, inputs[{{ loop.index0 }}], {{ tensor.size }});
{% endfor %}
{% endmacro %}
{# Outputs are copied even if the call failed: the caller reads the status first. #}
{% macro copied_outputs() %}
{% for tensor in module.outputs %}
    memcpy(outputs[{{ loop.index0 }}], its_outputs.{{ tensor.name | in_c }}, {{ tensor.size }});
{% endfor %}
{% endmacro %}
#include "{{ prefix }}.h"
{% if traced %}
{# All functions use mlf_<module>_run_traced with one workspace and one state, so that traced and other runs may
   alternate. The run function takes the state from its caller, which is this file. #}
#include <stddef.h>
#include <string.h>

{# One byte more, because C has no arrays of size 0 and a network may need no workspace. #}
{% for name, size in workspaces.items() %}
static uint8_t {{ name }}[{{ macros }}_{{ size }} + 1] __attribute__((aligned(64)));
{% endfor %}
{% if module.state_size %}
static uint8_t kept[{{ module.state_size }}] __attribute__((aligned(64)));
static int begun;
{% endif %}
static const size_t sizes[] = {
{% for traced in module.trace %}
    {{ traced.tensor.size }},
{% endfor %}
};

static void hand_out(void *context, uint32_t tensor, const void *data)
{
{# The copy must not write beyond the arrays that Python passed, whatever number the code reports. #}
    if (tensor < {{ module.trace | length }}) {
        memcpy(((void **)context)[tensor], data, sizes[tensor]);
    }
}

int32_t mlf_host_trace(void **inputs, void **outputs, void **traced)
{
    int32_t status;
{% if module.workspace_io %}
    struct {{ prefix }}_workspace_pools pools = { {%- for member in members %} .{{ member }} = {{ (workspaces | list)[loop.index0] }},{% endfor %} };
{% endif %}
{{ (mapped() if module.workspace_io else structs()) | trim("\n") }}
{% if module.state_size %}
    if (!begun) {
        begun = mlf_{{ name }}_reset(kept) == 0;
    }
{% endif %}
    status = mlf_{{ name }}_run_traced({{ "" if module.workspace_io else "&its_inputs, &its_outputs, " }}{{ workspaces | join(", ") }}{{ ", kept" if module.state_size }},
        traced != NULL ? hand_out : NULL, traced);
{% if module.workspace_io %}
{{ copied_outputs() | trim("\n") }}
{% endif %}
    return status;
}

int32_t mlf_host_run(void **inputs, void **outputs)
{
    return mlf_host_trace(inputs, outputs, NULL);
}

int32_t mlf_host_reset(void)
{
    return {{ "mlf_" ~ name ~ "_reset(kept)" if module.state_size else "0" }};
}
{% else %}
#include <stdint.h>
#include <string.h>

{# TVM's header has size and content of each pool as macros, so that this file contains no numbers. #}
{% for pool in pools %}
{% set member = pool.name | in_c %}
{% set full = macros ~ "_" ~ member.upper() %}
{% if pool.kind == "workspace" %}
static uint8_t pool_{{ member }}[{{ full }}_WORKSPACE_POOL_SIZE] __attribute__((aligned(64)));
{% else %}
static uint8_t pool_{{ member }}[{{ full }}_CONSTANT_POOL_SIZE] __attribute__((aligned(64))) = {
    {{ full }}_CONSTANT_POOL_DATA
};
{% endif %}
{% endfor %}
int32_t mlf_host_run(void **inputs, void **outputs);
int32_t mlf_host_run(void **inputs, void **outputs)
{
{% if pools or module.workspace_io %}
    struct {{ prefix }}_workspace_pools pools = { {%- for pool in pools %}{{ ", " if not loop.first }}.{{ pool.name | in_c }} = pool_{{ pool.name | in_c }}{% endfor -%} };
{% endif %}
{% if module.workspace_io %}
{{ mapped() | trim("\n") }}
    int32_t status = {{ prefix }}_run(&pools);
{{ copied_outputs() | trim("\n") }}
    return status;
{% else %}
{{ structs() | trim("\n") }}
    return {{ prefix }}_run(&its_inputs, &its_outputs{{ ", &pools" if pools }});
{% endif %}
}
int32_t mlf_host_reset(void);
int32_t mlf_host_reset(void)
{
    return {{ prefix ~ "_reset()" if module.state_size else "0" }};
}
{% endif %}
{% if module.inputs %}

{# A call for many cases, so that Python does nothing for each of them. Tensors are copied to aligned memory: cases
   follow each other without gaps. #}
int32_t mlf_host_run_cases(void **inputs, void **outputs, uint64_t cases, uint64_t *done);
int32_t mlf_host_run_cases(void **inputs, void **outputs, uint64_t cases, uint64_t *done)
{
{% for kind, tensors in [("in", module.inputs), ("out", module.outputs)] %}
{% for tensor in tensors %}
    static uint8_t {{ kind }}{{ loop.index0 }}[{{ tensor.size }} + 1] __attribute__((aligned(64)));
{% endfor %}
    void *its_{{ kind }}puts[] = { {%- for tensor in tensors %}{{ kind }}{{ loop.index0 }}, {% endfor %}NULL};
{% endfor %}
    for (*done = 0; *done < cases; ++*done) {
        int32_t status;
{% for tensor in module.inputs %}
        memcpy(in{{ loop.index0 }}, (const uint8_t *)inputs[{{ loop.index0 }}] + *done * {{ tensor.size }}u, {{ tensor.size }});
{% endfor %}
{% if module.state_size %}
        (void)mlf_host_reset();
{% endif %}
        status = mlf_host_run(its_inputs, its_outputs);
        if (status != 0) {
            return status;
        }
{% for tensor in module.outputs %}
        memcpy((uint8_t *)outputs[{{ loop.index0 }}] + *done * {{ tensor.size }}u, out{{ loop.index0 }}, {{ tensor.size }});
{% endfor %}
    }
    return 0;
}
{% endif %}
{% if copies is not none %}

#define MLF_MODULE {{ name }}
{# The header sizes an array of arguments with it, which only the file with the executor uses. #}
#define MLF_MOST_ARGUMENTS 1
{% if module.hook %}
#define MLF_HOOKED
{% endif %}
#include "mlf_executor.h"

static void **handed_out;

/* For each copy: the number of the call that writes the tensor, the argument, and the size in bytes. */
static const struct { uint32_t call, argument; size_t size; } copies[] = {
{% for copy in copies %}
    { {{- copy | join(", ") -}} },
{% endfor %}
{# An end mark: the loop also compares copies[made] after the last copy, and an empty array would not be C. #}
    {UINT32_MAX, 0, 0}
};
static uint32_t made;

void mlf_called(uint32_t call, const mlf_argument *own, const struct mlf_tensor *tensors,
                const struct mlf_run *run)
{
    for (; handed_out != NULL && copies[made].call == call; made++) {
        memcpy(handed_out[made], mlf_place(&tensors[own[copies[made].argument]], run), copies[made].size);
    }
}

int32_t mlf_host_trace(void **inputs, void **outputs, void **traced)
{
    int32_t status;
    handed_out = traced;
    made = 0;
    status = mlf_host_run(inputs, outputs);
    handed_out = NULL;
    return status;
}
{% endif %}
