{% include "head.mk" %}
{% if spaced %}

$(error $(_mlf_dir): {{ spaced }} has a space in its name, which make does not support; use CMake or SCons)
{% endif %}
{% for part in modules %}

# ---- Module {{ part.name }} ----

ifdef MLF_DIR_{{ part.name }}
$(if $(filter-out $(MLF_DIR_{{ part.name }}),$(_mlf_dir)),$(error $(_mlf_dir): module {{ part.name }} is already defined by \
$(MLF_DIR_{{ part.name }}); rename one of the modules with mlfbuild convert))
else
MLF_DIR_{{ part.name }} := $(_mlf_dir)
MLF_INCLUDES_{{ part.name }} :={% for path in part.include_dirs + private[part.name] + part.blob_dirs %}{{ " \\\n  " }}-I$(MLF_DIR_{{ part.name }})/{{ path }}{% endfor %}{% if part.blobs %}{{ " \\\n  " }}-I$(MLF_DIR_{{ part.name }}){% endif +%}
MLF_SOURCES_{{ part.name }} :={% for path in part.sources %}{{ " \\\n  " }}$(MLF_DIR_{{ part.name }})/{{ path }}{% endfor +%}
MLF_LIBRARIES_{{ part.name }} := $(MLF_BUILD)/libmlf_{{ part.name }}.a
{% for blobs in part.blobs %}

# How graph and parameters get into the image: incbin (GNU assembler) or array (C)
MLF_BLOBS ?= incbin
ifeq ($(MLF_BLOBS),array)
MLF_SOURCES_{{ part.name }} += $(MLF_DIR_{{ part.name }})/{{ blobs.array }}
else
MLF_SOURCES_{{ part.name }} += $(MLF_DIR_{{ part.name }})/{{ blobs.assembler }}
$(MLF_BUILD)/{{ part.name }}/{{ blobs.assembler }}.o: {% for path in blobs.reads %}$(MLF_DIR_{{ part.name }})/{{ path }}{{ "" if loop.last else " " }}{% endfor +%}
endif
{% endfor %}

_mlf_objects_{{ part.name }} := $(patsubst $(MLF_DIR_{{ part.name }})/%,$(MLF_BUILD)/{{ part.name }}/%.o,$(MLF_SOURCES_{{ part.name }}))

$(MLF_LIBRARIES_{{ part.name }}): $(_mlf_objects_{{ part.name }}){% for path in part.objects %}{{ " \\\n  " }}$(MLF_DIR_{{ part.name }})/{{ path }}{% endfor %}   $(MLF_DIR_{{ part.name }})/mlf.mk # lists the objects: removed ones must not stay in the library
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)

# Its own options, such as the optimisation level, also in debug builds; other options compile again
$(MLF_BUILD)/{{ part.name }}/level{{ part.options | join }}:
	@mkdir -p $(@D)
	@rm -f $(@D)/level*
	@: >$@
{% for suffixes, compiler, variable in ([("%.c.o %.S.o" if part.blobs else "%.c.o", "CC", "CFLAGS")] + ([("%.cc.o %.cpp.o", "CXX", "CXXFLAGS")] if part.cxx else [])) %}

$(filter {{ suffixes }},$(_mlf_objects_{{ part.name }})): $(MLF_BUILD)/{{ part.name }}/%.o: $(MLF_DIR_{{ part.name }})/% \
  $(MLF_BUILD)/{{ part.name }}/level{{ part.options | join }}
	@mkdir -p $(@D)
	$({{ compiler }}) {% if part.needs %}$(_mlf_needs_{{ part.name }}) {% endif %}{% for folder in part.kernel_include_dirs %}-I$(MLF_DIR_{{ part.name }})/{{ folder }} {% endfor %}$(MLF_INCLUDES_{{ part.name }}) $(CPPFLAGS) $({{ variable }}) $(MLF_CFLAGS){% for option in part.options %} {{ option }}{% endfor %} $(TARGET_ARCH) -MMD -MP -c -o $@ $<
{% endfor %}
{% for device in part.devices %}
{% include "device.mk" %}
{% endfor %}
{% for need in part.needs %}

# {{ part.name }} needs {{ need.title }}
ifeq ($(filter {{ need.name }},$(MLF_PROVIDED)),)
_mlf_beside := $(if $(filter .,$(MLF_DIR_{{ part.name }})),..,$(patsubst %/,%,$(dir $(MLF_DIR_{{ part.name }}))))
_mlf_fragment := $(firstword $(wildcard $(addsuffix /dependencies/{{ need.name }}.mk,$(_mlf_beside) $(MLF_DIR_{{ part.name }}))))
ifeq ($(_mlf_fragment),)
$(error $(MLF_DIR_{{ part.name }}): {{ part.name }} requires {{ need.title }}, which is missing: add {{ need.name }} to dependencies in the project file, or, if the firmware has it in CPPFLAGS and links it, write MLF_PROVIDED += {{ need.name }})
endif
include $(_mlf_fragment)
_mlf_needs_{{ part.name }} += $(MLF_INCLUDES_dep_{{ need.name }})
_mlf_needed := $(sort $(_mlf_needed) $(MLF_LIBRARIES_dep_{{ need.name }}))
MLF_LIBRARIES_{{ part.name }} += $(MLF_LIBRARIES_dep_{{ need.name }})
endif
{% endfor %}
{% if verified_on %}

# Test firmware: `mlfbuild verify --elf $(MLF_VERIFY_{{ part.name }}) --vectors <file>.npz` checks it
MLF_VERIFY_{{ part.name }} := $(MLF_BUILD)/{{ part.name }}_verify.elf
_mlf_verify_{{ part.name }} := $(MLF_BUILD)/{{ part.name }}/verify/verify.c.o

$(_mlf_verify_{{ part.name }}): $(MLF_DIR_{{ part.name }})/verify/verify.c
	@mkdir -p $(@D)
	$(CC) -I$(<D)/{{ part.name }} $(MLF_INCLUDES_{{ part.name }}) {% if on_board %}$(MLF_BOARD_INCLUDES) -DMEASURE_STACK=1 {% endif %}$(CPPFLAGS) $(CFLAGS) $(TARGET_ARCH) -MMD -MP -c -o $@ $<

$(MLF_VERIFY_{{ part.name }}): $(_mlf_verify_{{ part.name }}) {% if on_board %}$(MLF_BOARD_OBJECTS) {% endif %}$(MLF_LIBRARIES_{{ part.name }})
	$(CC) $(CFLAGS) $(TARGET_ARCH) $(LDFLAGS) {% if on_board %}$(MLF_BOARD_LDFLAGS) $(MLF_PLACEMENT_LDFLAGS) {% endif %}$^ -lm -o $@

-include $(_mlf_verify_{{ part.name }}:.o=.d)
{% endif %}

-include $(_mlf_objects_{{ part.name }}:.o=.d)
MLF_INCLUDES += $(MLF_INCLUDES_{{ part.name }})
MLF_SOURCES += $(MLF_SOURCES_{{ part.name }})
{{ libraries[part.name] }}
{% if part.libm %}
MLF_LDLIBS := -lm
{% endif %}
endif
{% endfor %}
{% if alias %}

# ---- The project's name ----

MLF_INCLUDES_{{ alias }} := {{ modules | map(attribute="name") | map("variable", "MLF_INCLUDES") | join(" ") }}
MLF_SOURCES_{{ alias }} := {{ modules | map(attribute="name") | map("variable", "MLF_SOURCES") | join(" ") }}
MLF_LIBRARIES_{{ alias }} := {{ alias_libraries }}
{% endif %}

.DEFAULT_GOAL := $(_mlf_goal)
