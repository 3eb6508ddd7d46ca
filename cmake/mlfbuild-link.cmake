#[[
Link an image, then check it:

    cmake -DIMAGE=<image> -P mlfbuild-link.cmake -- <command that checks it> --link <command that links it>

CMake puts the first part before the command of the linker (property RULE_LAUNCH_LINK), so this runs for every link. If
the link writes no map, it also writes <image>.map. If the check fails, the image is renamed: it is not there, so the
next build links and checks it again, and nothing flashes it.
]]

cmake_minimum_required(VERSION 3.22) # sets the policies for the code below

set(check "")
set(link "")
set(part "")
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(index RANGE ${last})
  set(word "${CMAKE_ARGV${index}}")
  if(part STREQUAL "" AND word STREQUAL "--")
    set(part check)
  elseif(part STREQUAL "check" AND word STREQUAL "--link")
    set(part link)
  elseif(part)
    string(REPLACE ";" "\\;" word "${word}")
    list(APPEND ${part} "${word}")
  endif()
endforeach()

function(stop STATUS)
  if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.29)
    cmake_language(EXIT ${STATUS})
  endif()
  message(FATAL_ERROR "  ${IMAGE} failed, see above")
endfunction()

# The map that the link writes: -Map=<file>, -Map,<file> or -Map <file>, in options for the compiler or in a file of
# options. GNU ld replaces % by the name of the image.
set(options "${link}")
foreach(word IN LISTS link)
  if(word MATCHES "^@(.+)" AND EXISTS "${CMAKE_MATCH_1}")
    file(STRINGS "${CMAKE_MATCH_1}" lines)
    list(APPEND options ${lines})
  endif()
endforeach()
list(FILTER options EXCLUDE REGEX "^-Xlinker$")
set(map "")
if(options MATCHES "^(.*[;, ])?--?Map[=,; ]([^;,]+)") # of several, the last
  string(REPLACE "%" "${IMAGE}" map "${CMAKE_MATCH_2}")
else()
  set(map "${IMAGE}.map")
  list(APPEND link "-Wl,-Map=${map}")
endif()

cmake_path(GET IMAGE EXTENSION LAST_ONLY suffix)
cmake_path(REMOVE_EXTENSION IMAGE LAST_ONLY OUTPUT_VARIABLE kept)
string(APPEND kept ".failed${suffix}")
file(REMOVE "${kept}")
execute_process(COMMAND ${link} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  stop(${status})
endif()
execute_process(COMMAND ${check} --elf "${IMAGE}" --map "${map}" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  file(RENAME "${IMAGE}" "${kept}")
  file(REAL_PATH "${kept}" kept)
  file(REAL_PATH "${map}" map)
  message(NOTICE "mlfbuild: the image is kept; for details run\nmlfbuild report --elf \"${kept}\" --map \"${map}\"")
  stop(1)
endif()
