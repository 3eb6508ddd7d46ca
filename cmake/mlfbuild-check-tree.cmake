#[[
The step that keeps an unpacked tree right, run by the build:

    cmake -DSTAMP=<file> -DTITLE=<model for target> -P mlfbuild-check-tree.cmake -- <command that puts the tree right>

Nothing is to be done where the step before has just made the tree and said so with <stamp>.fresh, beside the depfile
<stamp>.d: files that changed since, or are missing, need the command. It says itself what goes wrong.
]]

set(command "")
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(index RANGE ${last})
  if(begun)
    list(APPEND command "${CMAKE_ARGV${index}}")
  elseif(CMAKE_ARGV${index} STREQUAL "--")
    set(begun TRUE)
  endif()
endforeach()

set(fresh FALSE)
if(EXISTS "${STAMP}.fresh" AND EXISTS "${STAMP}.d")
  set(fresh TRUE)
  file(READ "${STAMP}.d" rule)
  string(REGEX REPLACE "^.*: " "" files "${rule}")
  string(STRIP "${files}" files)
  string(REGEX REPLACE "([^\\]) " "\\1;" files "${files}")
  foreach(file IN LISTS files)
    string(REGEX REPLACE "\\\\([ #])" "\\1" file "${file}")
    string(REPLACE "$$" "$" file "${file}")
    if(NOT EXISTS "${file}" OR NOT "${STAMP}.fresh" IS_NEWER_THAN "${file}")
      set(fresh FALSE)
    endif()
  endforeach()
  file(REMOVE "${STAMP}.fresh")
endif()

if(fresh)
  file(TOUCH "${STAMP}")
else()
  execute_process(COMMAND ${command} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "  the tree of model ${TITLE} is not right, see above")
  endif()
endif()
