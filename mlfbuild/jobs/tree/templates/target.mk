{% include "head.mk" %}
_mlf_root := $(_mlf_dir)

{% if board %}
MLF_BOARD := {{ board }}
include $(_mlf_root)/board/board.mk

{% endif %}
{% if placed %}
include $(_mlf_root)/placement/placement.mk

{% endif %}
{% for model in models %}
include $(_mlf_root)/{{ model }}/mlf.mk
{% endfor %}
{% if budgeted %}

# MLF_CHECK compares the image of a rule with budgets.json, if mlfbuild is in PATH. It needs the map of the linker:
#
#   app.elf: $(OBJECTS) $(MLF_LIBRARIES) $(MLF_BUDGETS)
#   	$(CC) $(LDFLAGS) $(OBJECTS) $(MLF_LIBRARIES) -Wl,-Map=$@.map -o $@
#   	$(MLF_CHECK)
#
# A map of another name than app.elf.map or app.map is that of MLF_MAP, such as MLF_MAP = $(BUILD)/output.map. In a rule
# that makes something else than the image, such as a hook of rules that you do not edit, MLF_IMAGE names the image.
MLF_BUDGETS += $(_mlf_root)/budgets.json
MLF_MAP ?=
MLF_IMAGE ?= $@
MLF_CHECK = @map='$(MLF_MAP)';   [ "$$map" ] || map=$$(ls -t $(MLF_IMAGE).map $(basename $(MLF_IMAGE)).map 2>/dev/null | head -n 1);   for budgets in $(MLF_BUDGETS); do set --   mlfbuild report -q --fail-over-budget --budgets $$budgets --elf $(MLF_IMAGE) $${map:+--map "$$map"};   if command -v mlfbuild > /dev/null; then "$$@" || { mv -f $(MLF_IMAGE) $(MLF_IMAGE).failed; exit 1; };   else echo "mlfbuild: not in PATH, so budgets are not checked; run $$*"; fi; done
# This file never exists. Make runs its rule when it has read all makefiles, also those that are included later.
-include $(_mlf_root)/budgets.unchecked
$(_mlf_root)/budgets.unchecked:
	@:$(if $(shell grep -ls MLF_CHECK $(filter-out %mlf.mk,$(MAKEFILE_LIST))),,$(info mlfbuild: no rule has $$(MLF_CHECK), so budgets are not checked; see $(@D)/mlf.mk))
{% endif %}

.DEFAULT_GOAL := $(_mlf_goal)
