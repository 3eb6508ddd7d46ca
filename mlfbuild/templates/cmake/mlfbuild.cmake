# Written by `mlfbuild init`. Defines mlfbuild_models() and the other functions of mlfbuild's CMake package:
#
#   include(cmake/mlfbuild.cmake)
#   mlfbuild_models(mlfbuild.yml TARGET <target>)
#
# The package is included by its absolute path, because find_package() does not find it if the toolchain sets
# CMAKE_FIND_ROOT_PATH_MODE_PACKAGE to ONLY, as pico-sdk does. -Dmlfbuild_DIR=<folder> selects another package.
if(NOT mlfbuild_DIR)
  find_program(
    MLFBUILD_COMMAND mlfbuild
    PATHS "${CMAKE_CURRENT_LIST_DIR}/../.venv/bin" "${CMAKE_CURRENT_LIST_DIR}/../.venv/Scripts"
    NO_CMAKE_FIND_ROOT_PATH
    DOC "The command mlfbuild")
  if(NOT MLFBUILD_COMMAND)
    message(FATAL_ERROR "  mlfbuild: program not found; activate its virtual environment, or set MLFBUILD_COMMAND to "
                        "its path")
  endif()
  execute_process(
    COMMAND ${MLFBUILD_COMMAND} cmake-dir
    OUTPUT_VARIABLE mlfbuild_DIR
    ERROR_VARIABLE _mlfbuild_error
    RESULT_VARIABLE _mlfbuild_status
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT _mlfbuild_status EQUAL 0)
    message(FATAL_ERROR "  ${MLFBUILD_COMMAND}: cannot be run (${_mlfbuild_status}) ${_mlfbuild_error}; install mlfbuild "
                        "again, or set MLFBUILD_COMMAND to its path")
  endif()
endif()
include("${mlfbuild_DIR}/mlfbuild-config.cmake")
