# Stands in for apps/Application.mk: objects are next to the sources, with the folder of the application in their names.
CXXEXT ?= .cxx
SUFFIX := $(subst /,.,$(CURDIR)).o
OBJS := $(CSRCS:%=%$(SUFFIX)) $(CXXSRCS:%=%$(SUFFIX))

all: $(OBJS)
	$(if $(OBJS),$(AR) rcs $(BIN) $(OBJS))

$(CSRCS:%=%$(SUFFIX)): %.c$(SUFFIX): %.c
	$(CC) -c $(CFLAGS) $($(strip $<)_CFLAGS) $< -o $@

$(CXXSRCS:%=%$(SUFFIX)): %$(CXXEXT)$(SUFFIX): %$(CXXEXT)
	$(CXX) -c $(CXXFLAGS) $($(strip $<)_CXXFLAGS) $< -o $@
