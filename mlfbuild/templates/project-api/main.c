{#- main.c of a firmware that a host with TVM drives. Values: modules (name, function, prefix, inputs, outputs, pools,
    table), their ports (name, type, count, size_macro, source_name, shape, code, bits) and headers. -#}
/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Answers a host with TVM on standard input and output, which the board support connects with the emulator's. For a
 * device, replace read() and write() by the functions of its UART, and print nothing else there.
 */
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "mlf_rpc.h"
{% for header in headers %}
#include "{{ header }}"
{% endfor %}
{% for module in modules %}

{% for kind, ports in (("in", module.inputs), ("out", module.outputs)) %}
{% for port in ports %}
static {{ port.type }} {{ module.name }}_{{ kind }}_{{ port.name }}[{{ port.count }}] __attribute__((aligned(16)));
{% endfor %}
{% endfor %}
{% for pool in module.pools %}
static uint8_t {{ module.name }}_pool_{{ pool.name }}[{{ pool.size_macro }}] __attribute__((aligned(16)));
{% endfor %}
{% for kind, ports in (("in", module.inputs), ("out", module.outputs)) %}
{% for port in ports %}
{% if port.size_macro %}
_Static_assert(sizeof {{ module.name }}_{{ kind }}_{{ port.name }} == {{ port.size_macro }}, "{{ port.name }} has another size");
{% endif %}
static const int64_t {{ module.name }}_{{ kind }}_{{ port.name }}_shape[] = { {{- port.shape | join(", ") or 1 -}} };
{% endfor %}
{% endfor %}
{% for kind, ports in (("in", module.inputs), ("out", module.outputs)) %}
static const struct mlf_rpc_tensor {{ module.name }}_{{ kind }}puts[] = {
{% for port in ports %}
    {.name = {{ port.source_name | c_string }},
     .data = {{ module.name }}_{{ kind }}_{{ port.name }},
     .size = sizeof {{ module.name }}_{{ kind }}_{{ port.name }},
     .shape = {{ module.name }}_{{ kind }}_{{ port.name }}_shape,
     .dimensions = {{ port.shape | length }},
     .code = {{ port.code }},
     .bits = {{ port.bits }}},
{% endfor %}
};
{% endfor %}
{% if module.table %}

/* The archive's table of packed functions, TVMSystemLibEntryPoint(), which mlfbuild renames. */
const struct mlf_rpc_library *{{ module.table }}(void);
{% endif %}

static int32_t run_{{ module.name }}(void)
{
    struct {{ module.prefix }}_inputs inputs = { {%- for port in module.inputs %}.{{ port.name }} = {{ module.name }}_in_{{ port.name }}{{ "" if loop.last else ", " }}{% endfor -%} };
    struct {{ module.prefix }}_outputs outputs = { {%- for port in module.outputs %}.{{ port.name }} = {{ module.name }}_out_{{ port.name }}{{ "" if loop.last else ", " }}{% endfor -%} };
{% if module.pools %}
    struct {{ module.prefix }}_workspace_pools workspace_pools = { {%- for pool in module.pools %}.{{ pool.name }} = {{ module.name }}_pool_{{ pool.name }}{{ "" if loop.last else ", " }}{% endfor -%} };
{% endif %}
    return {{ module.function }}(&inputs, &outputs{{ ", &workspace_pools" if module.pools }});
}
{% endfor %}

static void send(const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = write(STDOUT_FILENO, bytes, size);
        if (sent <= 0) {
            _exit(1);
        }
        bytes += sent;
        size -= (size_t)sent;
    }
}

int main(void)
{
    const struct mlf_rpc_model models[] = {
{% for module in modules %}
        {.name = "{{ module.name }}",
         .run = run_{{ module.name }},
         .inputs = {{ module.name }}_inputs,
         .outputs = {{ module.name }}_outputs,
         .input_count = {{ module.inputs | length }},
         .output_count = {{ module.outputs | length }},
         .library = {{ module.table ~ "()" if module.table else "NULL" }}},
{% endfor %}
    };
    uint8_t bytes[64];
    ssize_t count;
    mlf_rpc_start(models, {{ modules | length }}, send);
    while ((count = read(STDIN_FILENO, bytes, sizeof bytes)) > 0) {
        mlf_rpc_receive(bytes, (size_t)count);
    }
    return 0;
}
