/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Inputs of the network and expected outputs: {{ origin }}. */
#ifndef SAMPLE_H
#define SAMPLE_H

{% if odd %}
#include <math.h>
{% endif %}
#include <stdint.h>
{% for array in arrays %}

static const {{ array.type }} sample_{{ array.name }}[{{ array.count }}] = {
{% for line in array.lines %}
{{ line }}
{% endfor %}
};
{% endfor %}

#endif /* SAMPLE_H */
