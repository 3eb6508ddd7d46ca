#[[
mlfbuild's CMake package. `mlfbuild cmake-dir` prints this folder:

    cmake -B build -Dmlfbuild_DIR=$(mlfbuild cmake-dir) ...

    find_package(mlfbuild CONFIG REQUIRED)
    mlfbuild_tree(build/mlf/m55)                     # a tree that scons or `mlfbuild build` unpacked
    target_link_libraries(app PRIVATE mlf::kws)

It sets MLFBUILD_TOOLCHAIN_DIR, the folder of the toolchain files. A tree needs nothing of this package: a build that
only includes the tree's mlf.cmake works where mlfbuild is not installed.
]]

get_filename_component(MLFBUILD_TOOLCHAIN_DIR "${CMAKE_CURRENT_LIST_DIR}/toolchains" ABSOLUTE)

# Add the targets of the unpacked tree DIRECTORY, which is relative to the calling CMakeLists.txt.
function(mlfbuild_tree DIRECTORY)
  get_filename_component(tree "${DIRECTORY}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT EXISTS "${tree}/mlf.cmake")
    message(FATAL_ERROR "mlfbuild_tree: ${tree} holds no mlf.cmake; run scons or `mlfbuild build` first")
  endif()
  include("${tree}/mlf.cmake")
endfunction()

set(mlfbuild_FOUND TRUE)
