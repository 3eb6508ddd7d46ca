# Places sections of models in memory regions of the firmware's linker script, for GNU Make and GCC.
#
#   app.elf: $(OBJECTS) $(MLF_LIBRARIES) $(MLF_PLACEMENT)
#   	$(CC) $(LDFLAGS) -T firmware.ld $(MLF_PLACEMENT_LDFLAGS) $(OBJECTS) $(MLF_LIBRARIES) -o $@
#
# Put the flags after the firmware's own -T, whose script defines the regions. To write the constants of an image as raw
# bytes for external flash, from section .mlf_params or another one:
#
#   app_params.bin: app.elf
#   	$(call mlf_params_binary,.mlf_params)
MLF_PLACEMENT := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))/mlf_placement.ld
MLF_PLACEMENT_LDFLAGS := -T$(MLF_PLACEMENT)
OBJCOPY ?= $(patsubst %gcc,%objcopy,$(CC))
OBJDUMP ?= $(patsubst %gcc,%objdump,$(CC))

define mlf_params_binary
@rm -f $@
$(OBJCOPY) -O binary --only-section=$(1) $< $@
@test -s $@ || { rm -f $@; echo "$<: has no section $(1) with bytes; link a model that places constants there" >&2; exit 1; }
@$(OBJDUMP) -h -w $< | awk '$$2 == "$(1)" { print "$@: section " $$2 " for address 0x" $$5 }'
endef
