
# ---- Device {{ device.name }}: code of module {{ device.module }} for another compiler ----

# The compiler and the options of the device; CC, CPPFLAGS and CFLAGS are never used.
_mlf_compiler_{{ device.target }} := $(or $({{ device.variable }}_COMPILER){% if device.tools.variable %},$({{ device.tools.variable }}){% endif %}{% if device.tools.compiler %},{{ device.tools.compiler }}{% endif %})
ifeq ($(_mlf_compiler_{{ device.target }}),)
$(error $(MLF_DIR_{{ device.module }}): codegen/{{ device.name }} is code for the device {{ device.name }}, without a compiler: set \
{{ device.variable }}_COMPILER, and its options in {{ device.variable }}_FLAGS)
endif
_mlf_usual_{{ device.target }} := {{ device.flags | join(" ") }}
_mlf_flags_{{ device.target }} :=   $(if $(filter undefined,$(origin {{ device.variable }}_FLAGS)),$(_mlf_usual_{{ device.target }}),$({{ device.variable }}_FLAGS))
_mlf_key_{{ device.target }} := $(firstword $(shell echo '$(_mlf_compiler_{{ device.target }}) $(_mlf_flags_{{ device.target }})' | cksum))
_mlf_objects_{{ device.target }} :={% for path in device.sources %}{{ " \\\n  " }}$(MLF_BUILD)/{{ device.target }}/{{ path }}.o{% endfor +%}

# Other options compile again
$(MLF_BUILD)/{{ device.target }}/command-$(_mlf_key_{{ device.target }}):
	@mkdir -p $(@D)
	@rm -f $(@D)/command-*
	@: >$@

$(_mlf_objects_{{ device.target }}): $(MLF_BUILD)/{{ device.target }}/%.o: $(MLF_DIR_{{ device.module }})/% \
  $(MLF_BUILD)/{{ device.target }}/command-$(_mlf_key_{{ device.target }})
	@mkdir -p $(@D)
	$(_mlf_compiler_{{ device.target }}) $(_mlf_flags_{{ device.target }}) {% for folder in device.include_dirs %}-I$(MLF_DIR_{{ device.module }})/{{ folder }} {% endfor %}-MD -MP -MF $@.d -MQ $@ -o $@ -c $<

$(MLF_BUILD)/libmlf_{{ device.target }}.a: $(_mlf_objects_{{ device.target }}){% for path in device.objects %}{{ " \\\n  " }}$(MLF_DIR_{{ device.module }})/{{ path }}{% endfor %} $(MLF_DIR_{{ device.module }})/mlf.mk
	@mkdir -p $(@D)
	@rm -f $@
	$(or $(shell $(_mlf_compiler_{{ device.target }}) -print-prog-name=ar),$(AR)) rcs $@ $(filter %.o,$^)

-include $(_mlf_objects_{{ device.target }}:=.d)
MLF_DEVICE_LIBRARIES += $(MLF_BUILD)/libmlf_{{ device.target }}.a
{% if device.tools.linked %}
MLF_LIBRARIES_{{ device.module }} += $(MLF_BUILD)/libmlf_{{ device.target }}.a
{% else %}
# Images of this makefile do not link it
$(MLF_BUILD)/libmlf_{{ device.module }}.a: | $(MLF_BUILD)/libmlf_{{ device.target }}.a
{% endif %}
