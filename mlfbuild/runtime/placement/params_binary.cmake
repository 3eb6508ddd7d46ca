#[[
mlf_params_binary(<executable> [SECTION <section>] OUTPUT <file>)

Writes the raw bytes of a section of the linked image, by default .mlf_params, to a file whenever the image is linked.
Use the file to program external flash; the build prints the address for which the constants are linked. The file is
relative to the current binary folder. The function requires binutils for the image: CMAKE_OBJCOPY and CMAKE_OBJDUMP.
]]

if(CMAKE_SCRIPT_MODE_FILE) # the step after the link: cmake -DELF=... -P params_binary.cmake
  # A line has the section's name as its second word, then size, address and load address in hexadecimal.
  execute_process(
    COMMAND "${OBJDUMP}" -h -w "${ELF}"
    OUTPUT_VARIABLE sections
    ERROR_VARIABLE error
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "  ${ELF}: ${OBJDUMP} cannot read it: ${error}")
  endif()
  string(REPLACE "." "\\." pattern "${SECTION}")
  if(NOT sections MATCHES " ${pattern} +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)[^\n]*")
    message(FATAL_ERROR "  ${ELF}: has no section ${SECTION}; link a model that places constants there")
  endif()
  set(size ${CMAKE_MATCH_1})
  set(address ${CMAKE_MATCH_2})
  if(NOT CMAKE_MATCH_0 MATCHES "CONTENTS")
    message(FATAL_ERROR "  ${ELF}: its section ${SECTION} has no bytes in the image; name one of constants")
  endif()
  execute_process(
    COMMAND "${OBJCOPY}" -O binary "--only-section=${SECTION}" "${ELF}" "${OUTPUT}"
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "  ${ELF}: ${OBJCOPY} cannot copy its section ${SECTION}")
  endif()
  math(EXPR size "0x${size}")
  get_filename_component(name "${OUTPUT}" NAME)
  message("${name}: ${size} bytes of ${SECTION} for address 0x${address}")
  return()
endif()

set(MLF_PARAMS_BINARY_SCRIPT "${CMAKE_CURRENT_LIST_FILE}" CACHE INTERNAL "The step after the link")

function(mlf_params_binary TARGET)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "SECTION;OUTPUT" "")
  if(NOT ARG_OUTPUT OR ARG_UNPARSED_ARGUMENTS OR NOT TARGET "${TARGET}")
    message(FATAL_ERROR "  mlf_params_binary: write mlf_params_binary(<executable> [SECTION <section>] OUTPUT <file>)")
  endif()
  if(NOT CMAKE_OBJCOPY OR NOT CMAKE_OBJDUMP)
    message(FATAL_ERROR "  mlf_params_binary: set CMAKE_OBJCOPY and CMAKE_OBJDUMP to the programs of binutils")
  endif()
  if(NOT ARG_SECTION)
    set(ARG_SECTION .mlf_params)
  endif()
  get_filename_component(output "${ARG_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND
      "${CMAKE_COMMAND}" "-DELF=$<TARGET_FILE:${TARGET}>" "-DSECTION=${ARG_SECTION}" "-DOUTPUT=${output}"
      "-DOBJCOPY=${CMAKE_OBJCOPY}" "-DOBJDUMP=${CMAKE_OBJDUMP}" -P "${MLF_PARAMS_BINARY_SCRIPT}"
    DEPENDS "${TARGET}" "${MLF_PARAMS_BINARY_SCRIPT}"
    COMMENT "Writing ${ARG_OUTPUT}"
    VERBATIM)
  string(MAKE_C_IDENTIFIER "${ARG_OUTPUT}" name)
  add_custom_target(mlf-${TARGET}-${name} ALL DEPENDS "${output}")
endfunction()
