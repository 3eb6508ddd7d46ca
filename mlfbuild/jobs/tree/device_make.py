"""Print the rules of the Make fragment that build the code of other devices."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.jobs.tree.devices import DevicePart

_DEVICE = """
# ---- Device {name}: code of module {module} for another compiler ----

# The compiler and the options of the device; CC, CPPFLAGS and CFLAGS are never used.
_mlf_compiler_{target} := $(or $({variable}_COMPILER){chosen}{usual})
ifeq ($(_mlf_compiler_{target}),)
$(error $(MLF_DIR_{module}): codegen/{name} is code for the device {name}, without a compiler: set \\
{variable}_COMPILER, and its options in {variable}_FLAGS)
endif
_mlf_usual_{target} := {flags}
_mlf_flags_{target} := \
  $(if $(filter undefined,$(origin {variable}_FLAGS)),$(_mlf_usual_{target}),$({variable}_FLAGS))
_mlf_key_{target} := $(firstword $(shell echo '$(_mlf_compiler_{target}) $(_mlf_flags_{target})' | cksum))
_mlf_objects_{target} :={objects}

# Other options compile again
$(MLF_BUILD)/{target}/command-$(_mlf_key_{target}):
	@mkdir -p $(@D)
	@rm -f $(@D)/command-*
	@: >$@

$(_mlf_objects_{target}): $(MLF_BUILD)/{target}/%.o: $(MLF_DIR_{module})/% \\
  $(MLF_BUILD)/{target}/command-$(_mlf_key_{target})
	@mkdir -p $(@D)
	$(_mlf_compiler_{target}) $(_mlf_flags_{target}) {includes}-MD -MP -MF $@.d -MQ $@ -o $@ -c $<

$(MLF_BUILD)/libmlf_{target}.a: $(_mlf_objects_{target}){compiled} $(MLF_DIR_{module})/mlf.mk
	@mkdir -p $(@D)
	@rm -f $@
	$(or $(shell $(_mlf_compiler_{target}) -print-prog-name=ar),$(AR)) rcs $@ $(filter %.o,$^)

-include $(_mlf_objects_{target}:=.d)
MLF_DEVICE_LIBRARIES += $(MLF_BUILD)/libmlf_{target}.a
{linked}"""
_LINKED = "MLF_LIBRARIES_{module} += $(MLF_BUILD)/libmlf_{target}.a\n"
_NOT_LINKED = """\
# Images of this makefile do not link it
$(MLF_BUILD)/libmlf_{module}.a: | $(MLF_BUILD)/libmlf_{target}.a
"""


def device_rules(devices: tuple[DevicePart, ...]) -> Iterator[str]:
    """Yield the rules for the library of each of ``devices``, which follow those of the module."""
    for part in devices:
        module, target = part.module, part.target
        yield _DEVICE.format(
            module=module,
            name=part.name,
            target=target,
            variable=part.variable,
            chosen=f",$({part.tools.variable})" if part.tools.variable else "",
            usual=f",{part.tools.compiler}" if part.tools.compiler else "",
            flags=" ".join(part.flags),
            objects="".join(f" \\\n  $(MLF_BUILD)/{target}/{path}.o" for path in part.sources),
            compiled="".join(f" \\\n  $(MLF_DIR_{module})/{path}" for path in part.objects),
            includes="".join(f"-I$(MLF_DIR_{module})/{folder} " for folder in part.include_dirs),
            linked=(_LINKED if part.tools.linked else _NOT_LINKED).format(module=module, target=target),
        )
