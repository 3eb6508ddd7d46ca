{#- The C that `mlfbuild add` prints. Values: those of main.c, without a sample. -#}
{% for header in headers %}
#include "{{ header }}"
{% endfor %}
{% for module in modules %}

/* Put the inputs into in_<name>; the results are in out_<name>. */
static int32_t run_{{ module.name }}(void)
{
{% include "common/buffers.c" %}
    return {{ module.function }}(&inputs, &outputs{{ ", &workspace_pools" if module.pools }});
}
{% endfor %}
