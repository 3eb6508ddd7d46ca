{#- The arrays of `module`, and the structs with which it is called. -#}
{% for port in module.inputs %}
    static {{ port.type }} in_{{ port.name }}[{{ port.elements }}];
{% endfor %}
{% for port in module.outputs %}
    static {{ port.type }} out_{{ port.name }}[{{ port.elements }}];
{% endfor %}
{% for pool in module.pools %}
    static uint8_t pool_{{ pool.name }}[{{ pool.size_macro }}] __attribute__((aligned(16)));
{% endfor %}
    struct {{ module.prefix }}_inputs inputs = { {%- for port in module.inputs %}.{{ port.name }} = in_{{ port.name }}{{ "" if loop.last else ", " }}{% endfor -%} };
    struct {{ module.prefix }}_outputs outputs = { {%- for port in module.outputs %}.{{ port.name }} = out_{{ port.name }}{{ "" if loop.last else ", " }}{% endfor -%} };
{% if module.pools %}
    struct {{ module.prefix }}_workspace_pools workspace_pools = { {%- for pool in module.pools %}.{{ pool.name }} = pool_{{ pool.name }}{{ "" if loop.last else ", " }}{% endfor -%} };
{% endif %}
