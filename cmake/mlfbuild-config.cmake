#[[
mlfbuild's CMake package, for CMake 3.22 and later. `mlfbuild init --cmake-only` writes a file that includes it:

    include(cmake/mlfbuild.cmake)                    # or find_package(mlfbuild CONFIG REQUIRED)
    mlfbuild_models(mlfbuild.yml TARGET m55)         # models are compiled to C when the build needs them
    target_link_libraries(app PRIVATE mlf::kws)

    mlfbuild_tree(firmware/models)                   # or a tree that scons or `mlfbuild build` unpacked

`mlfbuild cmake-dir` prints this folder, which another installation's package can replace:

    cmake -B build -Dmlfbuild_DIR="$(mlfbuild cmake-dir)" ...

    MLFBUILD_TOOLCHAIN_DIR  set: the folder of the toolchain files
    MLFBUILD_COMMAND        cache variable: the command mlfbuild to run; by default that of the same installation
    MLFBUILD_FROZEN         if set, CMake or the build fails if anything differs from mlfbuild.lock

A tree does not require this package: a build that only includes the tree's mlf.cmake works without mlfbuild.
]]

if(CMAKE_VERSION VERSION_LESS 3.22)
  set(mlfbuild_NOT_FOUND_MESSAGE "mlfbuild: needs CMake 3.22 or later, this is ${CMAKE_VERSION}; pip install cmake")
  if(mlfbuild_FIND_REQUIRED OR NOT CMAKE_FIND_PACKAGE_NAME) # without find_package(): included by its path
    message(FATAL_ERROR "  ${mlfbuild_NOT_FOUND_MESSAGE}")
  endif()
  set(mlfbuild_FOUND FALSE)
  return()
endif()
cmake_minimum_required(VERSION 3.22...3.31) # sets the policies for the code below

get_filename_component(MLFBUILD_TOOLCHAIN_DIR "${CMAKE_CURRENT_LIST_DIR}/toolchains" ABSOLUTE)
include("${CMAKE_CURRENT_LIST_DIR}/mlfbuild-checks.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/mlfbuild-models.cmake")

# Add the targets of the unpacked tree DIRECTORY, which is relative to the calling CMakeLists.txt: a target's folder, or
# the tree of one model. If the tree was edited by hand, it is refused, because mlfbuild would silently undo the change
# when it writes the tree again.
function(mlfbuild_tree DIRECTORY)
  get_filename_component(tree "${DIRECTORY}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT EXISTS "${tree}/mlf.cmake")
    _mlfbuild_stop("mlfbuild_tree: ${tree} holds no mlf.cmake; run scons or `mlfbuild build` first")
  endif()
  file(GLOB records "${tree}/RECORD.json" "${tree}/*/RECORD.json")
  foreach(record IN LISTS records)
    _mlfbuild_check_record("${record}" "${tree}")
  endforeach()
  set(MLFBUILD_CHECKS_LINKS ON)
  get_property(before DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  include("${tree}/mlf.cmake")
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  list(REMOVE_ITEM targets ${before} mlf_models mlf_board mlf_placement)
  list(FILTER targets EXCLUDE REGEX "\\..*_library$") # the commands that make the libraries of other devices
  _mlfbuild_budgets_of_tree(budgets "${tree}" ${targets})
  set(budgeted "")
  if(budgets)
    _mlfbuild_find_command()
    _mlfbuild_budgeted(budgeted "${budgets}")
  endif()
  foreach(target IN LISTS targets)
    string(REGEX REPLACE "^mlf_|_blobs$" "" owner ${target})
    set_target_properties(${target} PROPERTIES MLFBUILD_OWNER ${owner})
    if(owner IN_LIST budgeted)
      set_target_properties(${target} PROPERTIES MLFBUILD_MODEL ${owner} MLFBUILD_BUDGETS "${budgets}")
    endif()
    _mlfbuild_devices(devices ${target})
    foreach(device IN LISTS devices)
      set_target_properties(${device} PROPERTIES MLFBUILD_OWNER ${owner})
    endforeach()
  endforeach()
  _mlfbuild_check_at_the_end()
endfunction()

# Set RESULT to the file with the budgets for images of TREE: its own, or, of the tree of one model, that of the target's
# folder. Without budgets, it is one that lists only the models, the libraries ARGN, so that links are checked for
# faults; empty if the compiler builds for this machine.
function(_mlfbuild_budgets_of_tree RESULT TREE)
  set(${RESULT} "" PARENT_SCOPE)
  get_filename_component(folder "${TREE}" DIRECTORY)
  foreach(file IN ITEMS "${TREE}/budgets.json" "${folder}/budgets.json")
    if(EXISTS "${file}")
      set(${RESULT} "${file}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(NOT CMAKE_CROSSCOMPILING)
    return()
  endif()
  set(models "")
  foreach(target IN LISTS ARGN)
    string(REGEX REPLACE "^mlf_|_blobs$" "" name ${target})
    if(name MATCHES "^dep_") # a library that models require
      continue()
    endif()
    list(APPEND models "\"${name}\": {\"budget\": {}, \"modules\": [\"${name}\"]}")
  endforeach()
  list(REMOVE_DUPLICATES models)
  list(JOIN models ", " models)
  get_filename_component(target "${TREE}" NAME)
  string(MD5 key "${TREE}")
  string(SUBSTRING "${key}" 0 8 key)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/mlf/.cmake/${target}.${key}.budgets.json")
  _mlfbuild_write("${file}" "{\"mlfbuild_budgets\": 1, \"target\": \"${target}\", \"models\": {${models}}, \"firmware\": {}}\n")
  set(${RESULT} "${file}" PARENT_SCOPE)
endfunction()

# Set RESULT to the names of the modules in FILE, a budgets.json.
function(_mlfbuild_budgeted RESULT FILE)
  file(READ "${FILE}" text)
  set(names "")
  string(JSON count LENGTH "${text}" models)
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
      string(JSON model MEMBER "${text}" models ${index})
      _mlfbuild_list(modules "${text}" models ${model} modules)
      list(APPEND names ${modules})
    endforeach()
  endif()
  set(${RESULT} "${names}" PARENT_SCOPE)
endfunction()

# Stop if a file that RECORD lists, relative to its folder, is missing or has other content; TREE is the user's
# argument.
function(_mlfbuild_check_record RECORD TREE)
  get_filename_component(folder "${RECORD}" DIRECTORY)
  file(READ "${RECORD}" text)
  string(REGEX MATCHALL "\"[^\"]+\": {[^{}]*\"sha256\": \"[0-9a-f]+\"" entries "${text}")
  foreach(entry IN LISTS entries)
    string(REGEX MATCH "\"([^\"]+)\": {[^{}]*\"sha256\": \"([0-9a-f]+)\"" entry "${entry}")
    set(path "${folder}/${CMAKE_MATCH_1}")
    set(problem "is missing")
    if(EXISTS "${path}")
      file(SHA256 "${path}" found)
      set(problem "was edited")
      if(found STREQUAL CMAKE_MATCH_2)
        continue()
      endif()
    endif()
    _mlfbuild_stop("mlfbuild_tree: ${path}: ${problem}; `mlfbuild build --tree` or `mlfbuild unpack` writes it anew, "
                   "and include(${TREE}/mlf.cmake) takes the tree as it is")
  endforeach()
endfunction()

set(mlfbuild_FOUND TRUE)
