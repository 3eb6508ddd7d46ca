#[[
The step of the build that restores an unpacked tree:

    cmake -DSTAMP=<file> -DTITLE=<model for target> -P mlfbuild-check-tree.cmake -- <command that restores the tree>

The previous step writes <stamp>.fresh, beside the depfile <stamp>.d, when it has made the tree. If this file exists and
no file of the tree has changed since or is missing, there is nothing to do. Otherwise the command runs; if it fails, it
prints the reason.
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
