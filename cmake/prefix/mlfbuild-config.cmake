# Installed as <prefix>/share/cmake/mlfbuild. find_package() finds it there if a virtual environment is active or named
# in CMAKE_PREFIX_PATH. The CMake package itself is inside the Python package.
get_filename_component(_mlfbuild_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_program(
  MLFBUILD_COMMAND mlfbuild
  PATHS "${_mlfbuild_prefix}/bin" "${_mlfbuild_prefix}/Scripts"
  NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
  DOC "The command mlfbuild")
execute_process(
  COMMAND "${MLFBUILD_COMMAND}" cmake-dir
  OUTPUT_VARIABLE _mlfbuild_folder
  ERROR_VARIABLE _mlfbuild_error
  RESULT_VARIABLE _mlfbuild_status
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
if(_mlfbuild_status EQUAL 0)
  include("${_mlfbuild_folder}/mlfbuild-config.cmake")
else()
  set(mlfbuild_FOUND FALSE)
  set(mlfbuild_NOT_FOUND_MESSAGE
      "${MLFBUILD_COMMAND}: cannot be run (${_mlfbuild_status}) ${_mlfbuild_error}; install mlfbuild again")
endif()
