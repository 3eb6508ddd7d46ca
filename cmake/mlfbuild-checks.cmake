#[[
Checks that run when the whole project has been read, because its CMakeLists.txt may link models and set flags anywhere:

    models in one image    a step before the link, mlf-check-<image>, fails if they share a global symbol with each
                           other or with a static library of the firmware
    budgets                after each link of an executable that uses models, mlfbuild compares it with the budgets
                           (mlfbuild-link.cmake); if that is not possible, a warning has the command to run
    the compiler           must compile for the target's CPU, according to its predefined macros and the flags in use
    removed models         the files that mlfbuild wrote for them in the build folder are removed

Libraries of models have the property MLFBUILD_OWNER, the name of the model in messages. Unless they are for this
machine, they also have MLFBUILD_MODEL, the name of the model, and MLFBUILD_BUDGETS, the file budgets.json.
]]

include_guard(GLOBAL)

# Let all checks run once, at the end of the top CMakeLists.txt.
function(_mlfbuild_check_at_the_end)
  get_property(planned GLOBAL PROPERTY MLFBUILD_CHECK_PLANNED)
  if(NOT planned)
    set_property(GLOBAL PROPERTY MLFBUILD_CHECK_PLANNED TRUE)
    cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL _mlfbuild_check)
  endif()
endfunction()

function(_mlfbuild_check)
  _mlfbuild_remove_strays()
  _mlfbuild_targets(targets "${CMAKE_SOURCE_DIR}")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(owner ${target} MLFBUILD_OWNER)
    if(owner)
      _mlfbuild_check_compiler(${target})
    elseif(type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
      _mlfbuild_check_image(${target})
      if(type STREQUAL "EXECUTABLE")
        _mlfbuild_check_board(${target})
        _mlfbuild_check_link(${target})
      endif()
    endif()
  endforeach()
endfunction()

# Stop if IMAGE links the start-up code of an emulated board, and the target has none. CMake names no remedy.
function(_mlfbuild_check_board IMAGE)
  get_target_property(linked ${IMAGE} LINK_LIBRARIES)
  if("mlf::board" IN_LIST linked AND NOT TARGET mlf::board)
    _mlfbuild_stop(
      "${IMAGE}: links mlf::board, but the target of mlfbuild_models has no emulated board; add `board: qemu` to it, or "
      "link your own start-up code")
  endif()
endfunction()

# Set RESULT to the targets of the source folder DIRECTORY and of all folders that it added.
function(_mlfbuild_targets RESULT DIRECTORY)
  get_property(targets DIRECTORY "${DIRECTORY}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY "${DIRECTORY}" PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    _mlfbuild_targets(more "${folder}")
    list(APPEND targets ${more})
  endforeach()
  set(${RESULT} "${targets}" PARENT_SCOPE)
endfunction()

# ---- Models in one image ----

# Compare the models in IMAGE with each other and with the firmware's static libraries before it is linked.
function(_mlfbuild_check_image IMAGE)
  _mlfbuild_linked(linked ${IMAGE})
  set(libraries "")
  set(owners "")
  set(listing "")
  foreach(target IN LISTS linked)
    get_target_property(owner ${target} MLFBUILD_OWNER)
    get_target_property(type ${target} TYPE)
    if(owner)
      list(APPEND owners "${owner}")
    elseif(NOT type STREQUAL "STATIC_LIBRARY")
      continue()
    else()
      set(owner "")
    endif()
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      list(APPEND libraries ${target})
      string(APPEND listing "${owner}=$<TARGET_FILE:${target}>\n")
    endif()
  endforeach()
  list(LENGTH libraries count)
  if(count LESS 2 OR NOT owners)
    return()
  endif()
  set(state "${CMAKE_BINARY_DIR}/mlf/.cmake/images/${IMAGE}")
  get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(several)
    string(APPEND state ".$<CONFIG>")
  endif()
  file(GENERATE OUTPUT "${state}.libraries" CONTENT "${listing}")
  add_custom_command(
    OUTPUT "${state}.checked"
    COMMAND ${MLFBUILD_COMMAND} clashes --image ${IMAGE} --list "${state}.libraries" --stamp "${state}.checked"
    DEPENDS ${libraries} "${state}.libraries"
    COMMENT "Comparing the models in ${IMAGE}"
    VERBATIM)
  add_custom_target(mlf-check-${IMAGE} DEPENDS "${state}.checked")
  if(CMAKE_GENERATOR MATCHES "Ninja")
    set_property(TARGET ${IMAGE} APPEND PROPERTY LINK_DEPENDS "${state}.checked") # compiling its sources need not wait
  else()
    add_dependencies(${IMAGE} mlf-check-${IMAGE})
  endif()
endfunction()

# Set RESULT to START and all targets that it links, directly or indirectly. Targets in a generator expression count
# regardless of its condition.
function(_mlfbuild_linked RESULT START)
  set(found "")
  set(todo ${START})
  while(todo)
    list(POP_FRONT todo name)
    get_target_property(alias ${name} ALIASED_TARGET)
    if(alias)
      set(name ${alias})
    endif()
    if(name IN_LIST found)
      continue()
    endif()
    list(APPEND found ${name})
    set(properties INTERFACE_LINK_LIBRARIES)
    get_target_property(type ${name} TYPE)
    if(name STREQUAL START OR NOT type STREQUAL "SHARED_LIBRARY")
      list(APPEND properties LINK_LIBRARIES) # those of a shared library are inside the library
    endif()
    foreach(property IN LISTS properties)
      get_target_property(items ${name} ${property})
      string(REGEX MATCHALL "[A-Za-z0-9_.+-]+(::[A-Za-z0-9_.+-]+)*" words "${items}")
      foreach(word IN LISTS words)
        if(TARGET ${word})
          list(APPEND todo ${word})
        endif()
      endforeach()
    endforeach()
  endwhile()
  set(${RESULT} "${found}" PARENT_SCOPE)
endfunction()

# ---- Budgets ----

# Check IMAGE after each link, with the budgets of the models that it links. A command POST_BUILD would be simpler, but
# CMake allows one only in the folder that defines the target. If budgets change, the image is linked again.
function(_mlfbuild_check_link IMAGE)
  _mlfbuild_linked(linked ${IMAGE})
  set(files "")
  foreach(target IN LISTS linked)
    get_target_property(file ${target} MLFBUILD_BUDGETS)
    get_target_property(model ${target} MLFBUILD_MODEL)
    if(file)
      list(APPEND files "${file}")
      string(MD5 key "${file}")
      list(APPEND models_${key} ${model})
    endif()
  endforeach()
  if(NOT files)
    return()
  endif()
  get_target_property(folder ${IMAGE} SOURCE_DIR)
  get_directory_property(compiler DIRECTORY "${folder}" DEFINITION CMAKE_C_COMPILER_ID)
  set(problem "")
  if(NOT CMAKE_GENERATOR MATCHES "Make|Ninja")
    set(problem "the generator ${CMAKE_GENERATOR} has no hook for links")
  elseif(NOT compiler MATCHES "^(GNU|Clang)$")
    set(problem "the linker map of the compiler ${compiler} is not supported")
  endif()
  _mlfbuild_launcher(launcher ${IMAGE} "${folder}")
  list(REMOVE_DUPLICATES files)
  foreach(file IN LISTS files)
    string(MD5 key "${file}")
    set(models ${models_${key}})
    list(REMOVE_DUPLICATES models)
    list(SORT models)
    list(JOIN models " --model " models)
    set(command "\"${MLFBUILD_COMMAND}\" report --fail-over-budget --budgets \"${file}\" --model ${models}")
    get_property(firmware GLOBAL PROPERTY "MLFBUILD_FIRMWARE_${file}")
    if(IMAGE IN_LIST firmware)
      string(APPEND command " --firmware ${IMAGE}")
    endif()
    if(problem)
      message(WARNING "  mlfbuild: links of ${IMAGE} are not checked, because ${problem}; after each link run\n"
                      "  ${command} --elf <image>")
    else()
      string(PREPEND launcher "\"${CMAKE_COMMAND}\" -DIMAGE=<TARGET> "
                              "-P \"${CMAKE_CURRENT_FUNCTION_LIST_DIR}/mlfbuild-link.cmake\" -- ${command} -q --link ")
      set_property(TARGET ${IMAGE} APPEND PROPERTY LINK_DEPENDS "${file}")
    endif()
  endforeach()
  if(NOT problem)
    set_property(TARGET ${IMAGE} PROPERTY RULE_LAUNCH_LINK "${launcher}")
  endif()
endfunction()

# Set RESULT to the launcher that CMake would put before the command that links IMAGE of FOLDER.
function(_mlfbuild_launcher RESULT IMAGE FOLDER)
  get_target_property(launcher ${IMAGE} RULE_LAUNCH_LINK)
  if(NOT launcher)
    get_property(launcher DIRECTORY "${FOLDER}" PROPERTY RULE_LAUNCH_LINK)
  endif()
  if(NOT launcher)
    get_property(launcher GLOBAL PROPERTY RULE_LAUNCH_LINK)
  endif()
  if(NOT launcher)
    set(launcher "")
  endif()
  set(${RESULT} "${launcher}" PARENT_SCOPE)
endfunction()

# ---- The compiler ----

# Stop if the C compiler, with the flags of the model's library LIBRARY, compiles for another CPU than the target's. If
# this cannot be determined, the compiler or the linker may detect the mismatch later.
function(_mlfbuild_check_compiler LIBRARY)
  get_property(rules GLOBAL PROPERTY MLFBUILD_COMPILER_RULES)
  get_target_property(type ${LIBRARY} TYPE)
  if(NOT rules OR type STREQUAL "INTERFACE_LIBRARY")
    return()
  endif()
  get_target_property(folder ${LIBRARY} SOURCE_DIR)
  foreach(part IN ITEMS "" _ID _TARGET _ARG1)
    get_directory_property(compiler${part} DIRECTORY "${folder}" DEFINITION CMAKE_C_COMPILER${part})
  endforeach()
  _mlfbuild_flags(flags ${LIBRARY} "${folder}")
  if(flags STREQUAL "unknown" OR NOT compiler_ID MATCHES "^(GNU|Clang|AppleClang|ARMClang)$")
    return()
  endif()
  separate_arguments(first NATIVE_COMMAND "${compiler_ARG1}")
  if(compiler_TARGET)
    list(APPEND first "--target=${compiler_TARGET}")
  endif()
  set(command "${compiler}" ${first} ${flags})
  get_property(checked GLOBAL PROPERTY MLFBUILD_COMPILERS_CHECKED)
  string(MD5 key "${command}")
  if(key IN_LIST checked)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY MLFBUILD_COMPILERS_CHECKED ${key})
  execute_process(
    COMMAND ${command} -dM -E -x c "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/toolchains/empty.c"
    OUTPUT_VARIABLE macros
    RESULT_VARIABLE status
    ERROR_QUIET)
  if(status EQUAL 0)
    _mlfbuild_judge_macros("${macros}" "${rules}" "${compiler}")
  endif()
endfunction()

# Set RESULT to the flags for LIBRARY of FOLDER that may select the CPU, or to "unknown" if they depend on a condition
# that only CMake's generator evaluates.
function(_mlfbuild_flags RESULT LIBRARY FOLDER)
  get_directory_property(build_type DIRECTORY "${FOLDER}" DEFINITION CMAKE_BUILD_TYPE)
  string(TOUPPER "${build_type}" build_type)
  set(text "")
  foreach(name IN ITEMS CMAKE_C_FLAGS CMAKE_C_FLAGS_${build_type})
    get_directory_property(value DIRECTORY "${FOLDER}" DEFINITION ${name})
    string(APPEND text " ${value}")
  endforeach()
  separate_arguments(options NATIVE_COMMAND "${text}")
  _mlfbuild_linked(linked ${LIBRARY})
  get_target_property(own ${LIBRARY} COMPILE_OPTIONS)
  foreach(target IN LISTS linked)
    get_target_property(more ${target} INTERFACE_COMPILE_OPTIONS)
    if(more)
      list(APPEND own ${more})
    endif()
  endforeach()
  # Options for several languages including C apply to models.
  string(REGEX REPLACE "[$]<[$]<COMPILE_LANGUAGE:([A-Z]+,)*C(,[A-Z]+)*>:([^<>]*)>" "\\3" own "${own}")
  list(APPEND options ${own})
  set(flags "")
  foreach(option IN LISTS options)
    string(REGEX REPLACE "^SHELL:" "" option "${option}")
    if(option MATCHES "(^|[:;, ])-(m|-?target)")
      if(option MATCHES "[<>]")
        set(${RESULT} unknown PARENT_SCOPE)
        return()
      endif()
      separate_arguments(words NATIVE_COMMAND "${option}")
      list(APPEND flags ${words})
    endif()
  endforeach()
  set(${RESULT} "${flags}" PARENT_SCOPE)
endfunction()

# Stop if MACROS, lines "#define NAME VALUE" of COMPILER, violate one of the plan's RULES.
function(_mlfbuild_judge_macros MACROS RULES COMPILER)
  string(JSON count LENGTH "${RULES}")
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON pattern GET "${RULES}" ${index} pattern)
    string(JSON wanted GET "${RULES}" ${index} wanted)
    string(JSON otherwise GET "${RULES}" ${index} otherwise)
    set(found FALSE)
    if(MACROS MATCHES "${pattern}")
      set(found TRUE)
    endif()
    if((wanted AND NOT found) OR (found AND NOT wanted))
      _mlfbuild_wrong_compiler("${COMPILER} ${otherwise}")
    endif()
  endforeach()
endfunction()

# Stop if the toolchain file is one of mlfbuild's own and for another CPU.
function(_mlfbuild_check_toolchain CPU)
  get_filename_component(folder "${CMAKE_TOOLCHAIN_FILE}" DIRECTORY)
  file(REAL_PATH "${folder}" folder)
  file(REAL_PATH "${MLFBUILD_TOOLCHAIN_DIR}" ours)
  if(CMAKE_TOOLCHAIN_FILE AND folder STREQUAL ours AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL CPU)
    _mlfbuild_wrong_compiler("${CMAKE_TOOLCHAIN_FILE} is for ${CMAKE_SYSTEM_PROCESSOR}")
  endif()
endfunction()

# Stop because of REASON, and print how to configure a build folder for the target.
function(_mlfbuild_wrong_compiler REASON)
  get_property(device GLOBAL PROPERTY MLFBUILD_DEVICE)
  list(GET device 0 project)
  list(GET device 1 name)
  list(GET device 2 cpu)
  get_property(toolchain GLOBAL PROPERTY MLFBUILD_TOOLCHAIN)
  set(advice "configure an empty build folder without CMAKE_TOOLCHAIN_FILE")
  if(toolchain)
    set(advice "configure an empty build folder with -DCMAKE_TOOLCHAIN_FILE=${toolchain}")
    if(CMAKE_TOOLCHAIN_FILE AND EXISTS "${CMAKE_TOOLCHAIN_FILE}" AND EXISTS "${toolchain}")
      file(REAL_PATH "${CMAKE_TOOLCHAIN_FILE}" used)
      file(REAL_PATH "${toolchain}" toolchain)
      if(used STREQUAL toolchain)
        set(advice "correct the flags in ${toolchain} or in CMakeLists.txt")
      endif()
    endif()
  endif()
  _mlfbuild_stop("mlfbuild_models: target ${name} (${cpu}) of ${project}: ${REASON}; ${advice}, or choose another "
                 "TARGET")
endfunction()

# ---- Removed models ----

# Remove the files that mlfbuild wrote to the build folder for models that the project file no longer contains.
function(_mlfbuild_remove_strays)
  get_property(strays GLOBAL PROPERTY MLFBUILD_STRAYS)
  foreach(tree IN LISTS strays)
    get_filename_component(name "${tree}" NAME)
    get_property(known GLOBAL PROPERTY MLFBUILD_MODEL_${name})
    get_property(files GLOBAL PROPERTY "MLFBUILD_STRAY_${tree}")
    if(known)
      continue() # another project file defines it
    endif()
    get_filename_component(folder "${tree}" DIRECTORY)
    get_filename_component(target "${folder}" NAME)
    file(GLOB state "${folder}/../.cmake/${target}/${name}.*") # or it would count as made if added again
    file(REMOVE ${files} ${state})
    file(GLOB_RECURSE left LIST_DIRECTORIES FALSE "${tree}/*" "${tree}/.*")
    if(NOT left)
      file(REMOVE_RECURSE "${tree}")
    endif()
  endforeach()
endfunction()
