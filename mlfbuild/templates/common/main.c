{#- main.c of a project that `mlfbuild init` writes. Values: modules (name, function, prefix, inputs, outputs, pools),
    their ports (name, type, count, size_macro), headers, and sample: whether there is a sample.h. -#}
{% set reals = {"float": {"abs": "fabsf", "max": "fmaxf", "suffix": "f"}, "double": {"abs": "fabs", "max": "fmax", "suffix": ""}} -%}
{% set types = modules | map(attribute="outputs") | sum(start=()) | map(attribute="type") | unique | sort -%}
/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Runs {% for module in modules %}`{{ module.name }}`{{ "" if loop.last else " and " }}{% endfor %}{{ " on the case in sample.h" if sample }} and prints the outputs.
 * Exit status 0: {{ "all outputs are as expected" if sample else "every network ran" }}.
 */
{% if "float" in types or "double" in types %}
#include <math.h>
{% endif %}
#include <stdint.h>
#include <stdio.h>
{% if sample %}
#include <string.h>
{% endif %}

{% for header in headers %}
#include "{{ header }}"
{% endfor %}

#define SHOWN 8 /* the number of elements of an output to print */
{% for type in types %}
{% set name = type.removesuffix("_t") %}

{% if type in reals %}
{% set real = reals[type] %}
/* The printf() of newlib-nano has no %f. */
static void print_{{ name }}({{ type }} value)
{
    const {{ type }} size = {{ real.abs }}(value);
    if (size < 4e6{{ real.suffix }}) {
        const unsigned long thousandths = (unsigned long)(size * 1000 + 0.5{{ real.suffix }});
        printf(" %s%lu.%03lu", value < 0 ? "-" : "", thousandths / 1000, thousandths % 1000);
    } else {
        printf(" %s", value != value ? "nan" : value < 0 ? "< -4e6" : "> 4e6");
    }
}

{% endif %}
{% if type in reals %}
/* Print an output; return the number of elements that differ from `expected`, or 0 if `expected` is NULL. */
/* The difference that passes is a part of the largest value, or of `largest`, the greatest possible one, if known. */
static unsigned show_{{ name }}(const char *name, const {{ type }} *values, const {{ type }} *expected, unsigned count, {{ type }} largest)
{
    unsigned wrong = 0;
    for (unsigned i = 0; expected != NULL && i < count; i++) {
        largest = {{ real.max }}(largest, {{ real.abs }}(expected[i]));
    }
{% else %}
/* Print an output; return the number of elements that differ from `expected`, or 0 if `expected` is NULL. */
static unsigned show_{{ name }}(const char *name, const {{ type }} *values, const {{ type }} *expected, unsigned count)
{
    unsigned wrong = 0;
{% endif %}
    printf("%s:", name);
    for (unsigned i = 0; i < count; i++) {
        if (i < SHOWN) {
{% if type in reals %}
            print_{{ name }}(values[i]);
        }
        wrong += expected != NULL && !({{ real.abs }}(values[i] - expected[i]) <= {{ tolerance }}{{ real.suffix }} * largest);
{% else %}
            printf(" %ld", (long)values[i]);
        }
        wrong += expected != NULL && values[i] != expected[i];
{% endif %}
    }
    printf("%s\n", count > SHOWN ? " ..." : "");
    return wrong;
}
{% endfor %}
{% for module in modules %}

static unsigned run_{{ module.name }}(void)
{
{% include "common/buffers.c" %}
    unsigned wrong = 0;
{% for kind, ports in (("in", module.inputs), ("out", module.outputs)) %}
{% for port in ports if port.size_macro %}
    _Static_assert(sizeof {{ kind }}_{{ port.name }} == {{ port.size_macro }}, "{{ port.name }} has another size");
{% endfor %}
{% for port in ports if sample %}
    _Static_assert(sizeof {{ kind }}_{{ port.name }} == sizeof sample_{{ kind }}_{{ port.name }}, "sample.h is for another model");
{% endfor %}
{% endfor %}

{% if sample %}
    /* The sample; put your own data there. */
{% for port in module.inputs %}
    memcpy(in_{{ port.name }}, sample_in_{{ port.name }}, sizeof in_{{ port.name }});
{% endfor %}
{% else %}
    /* The inputs are zero so far; put your own data there. */
{% endif %}
    if ({{ module.function }}(&inputs, &outputs{{ ", &workspace_pools" if module.pools }}) != 0) {
        printf("{{ module.name }}: the network did not run\n");
        return 1;
    }
{% for port in module.outputs %}
    wrong += show_{{ port.type.removesuffix("_t") }}("{{ module.name }} {{ port.name }}", out_{{ port.name }}, {{ "sample_out_" ~ port.name if sample else "NULL" }}, {{ port.elements }}{{ ", " ~ port.bound if port.type in reals }});
{% endfor %}
    return wrong;
}
{% endfor %}

int main(void)
{
    unsigned wrong = 0;
{% for module in modules %}
    wrong += run_{{ module.name }}();
{% endfor %}
    printf("%s\n", wrong == 0 ? "{{ "PASS" if sample else "DONE" }}" : "FAIL");
    return wrong == 0 ? 0 : 1;
}
