# Startup code, semihosting and linker script of one QEMU board, for GNU Make and GCC.
#
#   MLF_BOARD := mps2-an386
#   include board/board.mk
#   CPPFLAGS += $(MLF_BOARD_INCLUDES)
#   app.elf: $(OBJECTS) $(MLF_BOARD_OBJECTS) ...
#   	$(CC) $(CFLAGS) $(LDFLAGS) $(MLF_BOARD_LDFLAGS) $^ -o $@
#
# MLF_STACK_SIZE (bytes) sets the size of the stack. Compiler flags belong to your build; pass --specs=nano.specs
# (newlib's small C library), or for RISC-V --specs=picolibc.specs, to both the compiler and the linker.
MLF_BUILD ?= build/mlf
MLF_STACK_SIZE ?=
_mlf_goal := $(.DEFAULT_GOAL)
MLF_BOARD_DIR := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
ifeq ($(wildcard $(MLF_BOARD_DIR)/$(MLF_BOARD).ld),)
$(error MLF_BOARD is "$(MLF_BOARD)"; set it to a board that has a linker script in $(MLF_BOARD_DIR))
endif

MLF_BOARD_INCLUDES := -I$(MLF_BOARD_DIR)
MLF_BOARD_LDFLAGS := -nostartfiles -L$(MLF_BOARD_DIR) -T$(MLF_BOARD_DIR)/$(MLF_BOARD).ld \
  -Wl,--gc-sections $(if $(MLF_STACK_SIZE),-Xlinker --defsym=MLF_STACK_SIZE=$(MLF_STACK_SIZE))
MLF_BOARD_SOURCES := $(sort $(wildcard $(MLF_BOARD_DIR)/*.c))
MLF_BOARD_OBJECTS := $(patsubst $(MLF_BOARD_DIR)/%,$(MLF_BUILD)/board/%.o,$(MLF_BOARD_SOURCES))

$(MLF_BOARD_OBJECTS): $(MLF_BUILD)/board/%.o: $(MLF_BOARD_DIR)/%
	@mkdir -p $(@D)
	$(CC) $(MLF_BOARD_INCLUDES) $(CPPFLAGS) $(CFLAGS) $(TARGET_ARCH) -MMD -MP -c -o $@ $<

-include $(MLF_BOARD_OBJECTS:.o=.d)
.DEFAULT_GOAL := $(_mlf_goal)
