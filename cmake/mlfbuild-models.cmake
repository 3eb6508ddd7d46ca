#[[
mlfbuild_models(<project file> [TARGET <target>] [MODELS <model>...])

Defines mlf::<model> for each model of the target (or each of MODELS), mlf::models for all of them, mlf::board if the
target has a board, and mlf::placement if it has regions. The project file is relative to the calling CMakeLists.txt;
TARGET may be omitted if the project file has only one target. The function may be called again, for more models or
another project file, but always for the same CPU.

    configure   mlfbuild plan      names the files of each model's tree; nothing is compiled
    build       mlfbuild generate  compiles and unpacks one model: <build folder>/mlf/<target>/<model>

With -DMLFBUILD_FROZEN=ON both fail if anything differs from mlfbuild.lock, which is beside the project file.

Two steps make each model. Both write files only if their content changes, so that a touched model file rebuilds nothing
that depends on them:

    <model>.made           the model file, its settings or mlfbuild itself changed: compile if necessary, and unpack
    <model>.<...>.checked  a file of the tree was edited or deleted: restore the tree

The files of a tree that a compiler may read, and whose content may change, are byproducts, not outputs, because they
may be older than the model. If they were not declared, Ninja would check them only before it makes the model. The
tree's mlf.cmake is written when CMake is configured: if the build made this fragment, Ninja would make it before it
runs CMake again. The copies of libraries that models require are also written at this time; CMake runs again if the
libraries' own files or the copies change.
]]

include_guard(GLOBAL)

function(mlfbuild_models PROJECT_FILE)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TARGET" "MODELS")
  if(ARG_UNPARSED_ARGUMENTS OR ARG_KEYWORDS_MISSING_VALUES)
    list(JOIN ARG_UNPARSED_ARGUMENTS " " words)
    _mlfbuild_stop("bad arguments: ${words}${ARG_KEYWORDS_MISSING_VALUES}; write "
                   "mlfbuild_models(mlfbuild.yml TARGET <target> [MODELS <model>...])")
  endif()
  get_filename_component(project "${PROJECT_FILE}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  _mlfbuild_check_path("${project}")
  _mlfbuild_check_path("${CMAKE_BINARY_DIR}")
  _mlfbuild_find_command()

  set(choice --file "${project}" --build-dir "${CMAKE_CURRENT_BINARY_DIR}")
  if(ARG_TARGET)
    list(APPEND choice --target "${ARG_TARGET}")
  endif()
  if(MLFBUILD_FROZEN)
    list(APPEND choice --frozen)
  endif()
  list(TRANSFORM ARG_MODELS PREPEND "--model;" OUTPUT_VARIABLE chosen)
  _mlfbuild_plan(plan "${project}" ${choice} ${chosen})

  _mlfbuild_next_line(names plan)
  string(JSON lock GET "${names}" lock) # empty if there is none
  _mlfbuild_list(folders "${names}" watched) # a new file there can be another model
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${lock} ${folders})
  _mlfbuild_list(targets "${names}" targets)
  _mlfbuild_list(models "${names}" models)
  list(LENGTH targets count)
  if(NOT count EQUAL 1)
    list(JOIN targets ", " targets)
    _mlfbuild_stop("${project}: has several targets (${targets}); add TARGET <target> to mlfbuild_models")
  endif()
  _mlfbuild_next_line(target plan)
  _mlfbuild_one_device("${target}" "${project}")
  _mlfbuild_note_checks("${target}")
  _mlfbuild_list(watched "${target}" watched) # libraries that models require were copied when the plan was made
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${watched})
  _mlfbuild_budgets("${target}" "${project}")
  _mlfbuild_watch_generator("${names}")
  if(NOT TARGET mlf_models)
    add_library(mlf_models INTERFACE)
    add_library(mlf::models ALIAS mlf_models)
  endif()
  foreach(model IN LISTS models)
    _mlfbuild_next_line(model plan)
    _mlfbuild_model("${model}" "${project}" "${lock}")
  endforeach()
  _mlfbuild_board("${target}")
  _mlfbuild_placement("${target}")
endfunction()

# Define the targets `flash` and `run`, or flash-<image> and run-<image> for every further executable. `flash` writes the
# image to the device of the target that mlfbuild_models names. `run` runs it there, or on the target's board in QEMU, and
# prints its output. MLFBUILD_RUN_OPTIONS are options of `mlfbuild run-firmware`, such as --timeout;10.
function(mlfbuild_device IMAGE)
  get_property(device GLOBAL PROPERTY MLFBUILD_DEVICE)
  if(ARGN OR NOT device)
    _mlfbuild_stop("mlfbuild_device(<executable>): call mlfbuild_models first")
  endif()
  if(NOT TARGET "${IMAGE}")
    _mlfbuild_stop("mlfbuild_device: ${IMAGE} is not a target; write add_executable(${IMAGE} ...) first")
  endif()
  list(GET device 0 project)
  list(GET device 1 name)
  set(choice --file "${project}" --target "${name}" --elf "$<TARGET_FILE:${IMAGE}>")
  foreach(verb IN ITEMS flash run)
    set(target ${verb})
    if(TARGET ${verb})
      set(target ${verb}-${IMAGE})
    endif()
    set(command flash)
    if(verb STREQUAL "run")
      set(command run-firmware ${MLFBUILD_RUN_OPTIONS})
    endif()
    add_custom_target(
      ${target}
      COMMAND "${MLFBUILD_COMMAND}" ${command} ${choice}
      DEPENDS ${IMAGE}
      USES_TERMINAL VERBATIM)
  endforeach()
endfunction()

# Define the target parameters-<name>, which writes the values of the network NEW for firmware with MODEL as the blob
# <name>.bin: mlfbuild_parameters(kws-2.bin MODEL kws NEW kws-v2.tflite [NUMBER 2] [SELF_TEST 3]). It fails if NEW has
# another structure.
function(mlfbuild_parameters BLOB)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODEL;NEW;NUMBER;SELF_TEST" "")
  get_property(device GLOBAL PROPERTY MLFBUILD_DEVICE)
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_MODEL OR NOT arg_NEW)
    _mlfbuild_stop("mlfbuild_parameters: write mlfbuild_parameters(<blob> MODEL <model> NEW <file>)")
  endif()
  if(NOT device OR NOT TARGET mlf_${arg_MODEL})
    _mlfbuild_stop("mlfbuild_parameters: call mlfbuild_models first, for a target with ${arg_MODEL}")
  endif()
  list(GET device 0 project)
  list(GET device 1 name)
  get_filename_component(new "${arg_NEW}" ABSOLUTE)
  get_filename_component(blob "${BLOB}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  set(options --for "${arg_MODEL}" --file "${project}" --target "${name}")
  if(arg_NUMBER)
    list(APPEND options --number "${arg_NUMBER}")
  endif()
  if(arg_SELF_TEST)
    list(APPEND options --self-test "${arg_SELF_TEST}")
  endif()
  get_property(vectors GLOBAL PROPERTY MLFBUILD_VECTORS_${arg_MODEL}) # the first ones are the tests in the blob
  if(NOT EXISTS "${vectors}")
    set(vectors "")
  endif()
  add_custom_command(
    OUTPUT "${blob}"
    COMMAND "${MLFBUILD_COMMAND}" parameters "${new}" ${options} -o "${blob}"
    DEPENDS "${new}" "${project}" ${vectors} mlf_${arg_MODEL}
    COMMENT "Writing ${BLOB} from ${arg_NEW}"
    VERBATIM)
  # Another name than that of the file, which Ninja would take for a second rule of it.
  get_filename_component(title "${BLOB}" NAME_WLE) # of kws-1.2.bin, the dot stays
  add_custom_target("parameters-${title}" DEPENDS "${blob}")
endfunction()

# ---- Configure ----

# Stop with the text of all arguments, indented so that CMake does not wrap it.
function(_mlfbuild_stop)
  set(text "")
  math(EXPR last "${ARGC} - 1")
  foreach(index RANGE ${last}) # ARGN would lose every semicolon
    string(APPEND text "${ARGV${index}}")
  endforeach()
  string(REPLACE "\n" "\n  " text "${text}")
  message(FATAL_ERROR "  ${text}")
endfunction()

# Stop if CMake, Ninja or the shell would read characters of PATH, such as an unpaired bracket, in another way.
function(_mlfbuild_check_path PATH)
  foreach(unsuited IN ITEMS "([\"$<>?#`|\\])" "(;)" "(\\[)[^]]*$" "^[^[]*(])")
    if("${PATH}" MATCHES "${unsuited}")
      _mlfbuild_stop("mlfbuild_models: CMake cannot build in a path with ${CMAKE_MATCH_1}: ${PATH}; rename the folder")
    endif()
  endforeach()
endfunction()

# Set the cache variable MLFBUILD_COMMAND to the command of the installation of this file, or else the first in PATH.
function(_mlfbuild_find_command)
  get_filename_component(package "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.." ABSOLUTE)
  if(EXISTS "${package}/__init__.py") # in site-packages
    set(places "${package}/../../../../bin" "${package}/../../../Scripts")
  else() # in a clone
    set(places "${package}/.venv/bin")
  endif()
  find_program(
    MLFBUILD_COMMAND mlfbuild
    HINTS ${places}
    NO_CMAKE_FIND_ROOT_PATH
    DOC "The command mlfbuild")
  if(NOT MLFBUILD_COMMAND)
    _mlfbuild_stop("mlfbuild: program not found; activate its virtual environment or set MLFBUILD_COMMAND to its path")
  endif()
endfunction()

# Set RESULT to the plan of the selected models, lines of JSON; ARGN are the options that select them.
function(_mlfbuild_plan RESULT PROJECT_FILE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_FILE}")
  _mlfbuild_compilers(compilers)
  execute_process(
    COMMAND ${compilers} ${MLFBUILD_COMMAND} plan ${ARGN} --lines --complete --quiet
    OUTPUT_VARIABLE plan
    ERROR_VARIABLE error
    RESULT_VARIABLE status
    ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    if(NOT error)
      _mlfbuild_stop("${MLFBUILD_COMMAND}: cannot be run (${status}); activate its virtual environment or set "
                     "MLFBUILD_COMMAND to its path")
    endif()
    _mlfbuild_stop("${error}")
  endif()
  string(REGEX MATCH "^[^\n]*" first "${plan}")
  string(JSON fingerprint ERROR_VARIABLE error GET "${first}" generator fingerprint)
  if(error)
    _mlfbuild_stop("${MLFBUILD_COMMAND}: is another version of mlfbuild than ${CMAKE_CURRENT_FUNCTION_LIST_DIR}; set "
                   "mlfbuild_DIR to what `${MLFBUILD_COMMAND} cmake-dir` prints")
  endif()
  set(${RESULT} "${plan}" PARENT_SCOPE)
endfunction()

# Set RESULT to a command prefix that passes the compilers of this build in environment variables.
function(_mlfbuild_compilers RESULT)
  set(variables "")
  foreach(name IN ITEMS MLFBUILD_ARM_NONE_EABI_GCC MLFBUILD_CLANG MLFBUILD_RISCV64_UNKNOWN_ELF_GCC)
    if(${name})
      list(APPEND variables "${name}=${${name}}")
    endif()
  endforeach()
  if(NOT CMAKE_CROSSCOMPILING AND CMAKE_C_COMPILER)
    list(APPEND variables "CC=${CMAKE_C_COMPILER}")
  endif()
  set(${RESULT} "")
  if(MLFBUILD_FROZEN AND variables)
    set(${RESULT} "${CMAKE_COMMAND}" -E env ${variables})
  endif()
  set(${RESULT} "${${RESULT}}" PARENT_SCOPE)
endfunction()

# Set LINE to the first line of the text in the variable TEXT, and remove this line. CMake parses a JSON text again for
# each value, so one text for 200 models would take seconds.
function(_mlfbuild_next_line LINE TEXT)
  string(FIND "${${TEXT}}" "\n" end)
  string(SUBSTRING "${${TEXT}}" 0 ${end} line)
  math(EXPR begin "${end} + 1")
  string(SUBSTRING "${${TEXT}}" ${begin} -1 rest)
  set(${LINE} "${line}" PARENT_SCOPE)
  set(${TEXT} "${rest}" PARENT_SCOPE)
endfunction()

# Set RESULT to the list in the JSON array of texts at the path ARGN of JSON. CMake parses the array again for each value
# that it gets, half a second for the sources of mlfbuild, so it gets them only where escapes are to be replaced.
function(_mlfbuild_list RESULT JSON)
  string(JSON array GET "${JSON}" ${ARGN})
  set(items "")
  if(array MATCHES "\\\\")
    string(JSON count LENGTH "${array}")
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
      string(JSON item GET "${array}" ${index})
      list(APPEND items "${item}")
    endforeach()
  else()
    string(REGEX MATCHALL "\"[^\"]*\"" items "${array}")
    string(REPLACE "\"" "" items "${items}")
  endif()
  set(${RESULT} "${items}" PARENT_SCOPE)
endfunction()

# Write TEXT to PATH unless the file has this content already, so that nothing that depends on it is out of date.
function(_mlfbuild_write PATH TEXT)
  string(SHA256 wanted "${TEXT}")
  set(found "")
  if(EXISTS "${PATH}")
    file(SHA256 "${PATH}" found)
  endif()
  if(NOT wanted STREQUAL found)
    string(RANDOM LENGTH 12 random) # a step of another build may read the file now
    file(WRITE "${PATH}.${random}" "${TEXT}")
    file(RENAME "${PATH}.${random}" "${PATH}")
  endif()
endfunction()

# Stop if this build already makes firmware for another device: it has one compiler with one set of flags.
function(_mlfbuild_one_device TARGET PROJECT_FILE)
  string(JSON name GET "${TARGET}" target)
  string(JSON cpu GET "${TARGET}" cpu)
  get_property(known GLOBAL PROPERTY MLFBUILD_DEVICE)
  if(known)
    list(GET known 0 known_project)
    list(GET known 1 known_name)
    list(GET known 2 known_cpu)
    if((PROJECT_FILE STREQUAL known_project AND NOT name STREQUAL known_name) OR NOT cpu STREQUAL known_cpu)
      _mlfbuild_stop("mlfbuild_models: target ${name} (${cpu}) of ${PROJECT_FILE} after target ${known_name} "
                     "(${known_cpu}) of ${known_project}: one build folder is for one target; configure another for ${name}")
    endif()
  endif()
  set_property(GLOBAL PROPERTY MLFBUILD_DEVICE "${PROJECT_FILE}" "${name}" "${cpu}")
endfunction()

# Store the data for the checks at the end (mlfbuild-checks.cmake); stop now if the toolchain file is for another CPU.
function(_mlfbuild_note_checks TARGET)
  string(JSON cpu GET "${TARGET}" cpu)
  string(JSON rules GET "${TARGET}" compiler)
  string(JSON toolchain GET "${TARGET}" toolchain)
  set_property(GLOBAL PROPERTY MLFBUILD_COMPILER_RULES "${rules}")
  set_property(GLOBAL PROPERTY MLFBUILD_TOOLCHAIN "${toolchain}")
  _mlfbuild_check_toolchain(${cpu})
  string(JSON count LENGTH "${TARGET}" strays)
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
      string(JSON tree GET "${TARGET}" strays ${index} tree)
      _mlfbuild_list(files "${TARGET}" strays ${index} files)
      set_property(GLOBAL APPEND PROPERTY MLFBUILD_STRAYS "${tree}")
      set_property(GLOBAL PROPERTY "MLFBUILD_STRAY_${tree}" "${files}")
    endforeach()
  endif()
  _mlfbuild_check_at_the_end()
endfunction()

# Write the budgets of the target's images to a file, which links depend on, and set MLFBUILD_BUDGETS to its path; empty
# for this machine, to which budgets do not apply.
function(_mlfbuild_budgets TARGET PROJECT_FILE)
  string(JSON name GET "${TARGET}" target)
  string(JSON budgets GET "${TARGET}" budgets)
  set(file "")
  if(budgets)
    string(MD5 key "${PROJECT_FILE}") # another project file may have a target of that name
    string(SUBSTRING "${key}" 0 8 key)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/mlf/.cmake/${name}.${key}.budgets.json")
    _mlfbuild_write("${file}" "${budgets}")
    _mlfbuild_list(firmware "${TARGET}" firmware)
    set_property(GLOBAL PROPERTY "MLFBUILD_FIRMWARE_${file}" "${firmware}")
  endif()
  set(MLFBUILD_BUDGETS "${file}" PARENT_SCOPE)
endfunction()

# If mlfbuild itself changes, run CMake again, because names of files may change, and make each model again.
function(_mlfbuild_watch_generator PLAN)
  string(JSON generator GET "${PLAN}" generator)
  string(JSON fingerprint GET "${generator}" fingerprint)
  _mlfbuild_write("${CMAKE_CURRENT_BINARY_DIR}/mlf/.cmake/generator" "${fingerprint}")
  _mlfbuild_list(sources "${generator}" reads)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
endfunction()

# ---- Targets ----

# Define the targets of one model and the steps that make its tree.
function(_mlfbuild_model MODEL PROJECT_FILE LOCK)
  string(JSON name GET "${MODEL}" model)
  get_property(known GLOBAL PROPERTY MLFBUILD_MODEL_${name})
  if(known STREQUAL PROJECT_FILE)
    return() # an earlier call defined it
  elseif(known)
    _mlfbuild_stop("mlfbuild_models: model ${name} of ${PROJECT_FILE}: ${known} has a model of that name, too; rename one")
  endif()
  set_property(GLOBAL PROPERTY MLFBUILD_MODEL_${name} "${PROJECT_FILE}")
  string(JSON vectors GET "${MODEL}" vectors)
  set_property(GLOBAL PROPERTY MLFBUILD_VECTORS_${name} "${vectors}")

  string(JSON tree GET "${MODEL}" tree)
  string(JSON fragment GET "${MODEL}" fragment)
  _mlfbuild_write("${tree}/mlf.cmake" "${fragment}")
  _mlfbuild_steps("${MODEL}" "${PROJECT_FILE}" "${LOCK}")
  include("${tree}/mlf.cmake")
  _mlfbuild_list(modules "${MODEL}" modules)
  foreach(module IN LISTS modules)
    set(owner ${name})
    if(NOT modules STREQUAL name)
      set(owner "${name} (module ${module})")
    endif()
    foreach(library IN ITEMS mlf_${module} mlf_${module}_blobs)
      if(TARGET ${library})
        add_dependencies(${library} mlf-tree-${name})
        set_target_properties(${library} PROPERTIES MLFBUILD_OWNER "${owner}" MLFBUILD_MODEL ${name} MLFBUILD_BUDGETS
                                                    "${MLFBUILD_BUDGETS}")
      endif()
    endforeach()
    _mlfbuild_devices(devices mlf_${module})
    foreach(device IN LISTS devices)
      add_dependencies(${device}_library mlf-tree-${name})
      set_target_properties(${device} PROPERTIES MLFBUILD_OWNER "${owner}" MLFBUILD_MODEL ${name} MLFBUILD_BUDGETS
                                                 "${MLFBUILD_BUDGETS}")
    endforeach()
  endforeach()
  target_link_libraries(mlf_models INTERFACE mlf::${name})
endfunction()

# Set RESULT to the libraries with the code of LIBRARY for other devices.
function(_mlfbuild_devices RESULT LIBRARY)
  get_target_property(devices ${LIBRARY} MLF_DEVICE_TARGETS)
  if(NOT devices)
    set(devices "")
  endif()
  set(${RESULT} "${devices}" PARENT_SCOPE)
endfunction()

# Define the target mlf-tree-<model>, which makes the tree and restores its files.
function(_mlfbuild_steps MODEL PROJECT_FILE LOCK)
  string(JSON name GET "${MODEL}" model)
  string(JSON target GET "${MODEL}" target)
  string(JSON source GET "${MODEL}" reads 1)
  string(JSON settings GET "${MODEL}" settings)
  string(JSON tree GET "${MODEL}" tree)
  _mlfbuild_list(files "${MODEL}" changing)
  _mlfbuild_list(all "${MODEL}" writes)
  list(REMOVE_ITEM all "${tree}/mlf.cmake")
  set_property(DIRECTORY APPEND PROPERTY ADDITIONAL_CLEAN_FILES ${all})
  _mlfbuild_list(watched "${MODEL}" watched) # an archive's index lists its files
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${watched})

  set(state "${CMAKE_CURRENT_BINARY_DIR}/mlf/.cmake")
  set(made "${state}/${target}/${name}.made")
  # The name depends on the list of files: if a step changed the files that it watches, Make would keep the old ones,
  # too.
  string(MD5 list "${all}")
  string(SUBSTRING "${list}" 0 8 list)
  set(checked "${state}/${target}/${name}.${list}.checked")
  _mlfbuild_write("${state}/${target}/${name}.settings" "${settings}")
  set(check_tree "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/mlfbuild-check-tree.cmake")
  # A build sees no change of its environment: the configuration decides the date, as with string(TIMESTAMP).
  set(date --unset=SOURCE_DATE_EPOCH)
  if(NOT "$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
    set(date "SOURCE_DATE_EPOCH=$ENV{SOURCE_DATE_EPOCH}")
  endif()
  set(generate
      "${CMAKE_COMMAND}" -E env "${date}" ${MLFBUILD_COMMAND} generate --file "${PROJECT_FILE}" #
      --build-dir "${CMAKE_CURRENT_BINARY_DIR}" --target ${target} --model ${name})
  set(held "")
  if(MLFBUILD_FROZEN)
    list(APPEND generate --frozen)
    set(held "${LOCK}")
  endif()
  add_custom_command(
    OUTPUT "${made}"
    BYPRODUCTS ${files}
    COMMAND ${generate} --stamp "${made}" --depfile "${made}.d" --tree-stamp "${checked}"
    DEPENDS "${source}" "${state}/${target}/${name}.settings" "${state}/generator" ${held}
    DEPFILE "${made}.d"
    COMMENT "Making model ${name} for ${target}"
    VERBATIM)
  add_custom_command(
    OUTPUT "${checked}"
    COMMAND "${CMAKE_COMMAND}" "-DSTAMP=${checked}" "-DTITLE=${name} for ${target}" -P "${check_tree}" -- #
            ${generate} --stamp "${checked}" --depfile "${checked}.d" --depends tree
    DEPENDS "${made}"
    DEPFILE "${checked}.d"
    COMMENT "Checking the tree of model ${name} for ${target}"
    VERBATIM)
  add_custom_target(mlf-tree-${name} DEPENDS "${checked}")
endfunction()

# Define mlf::board, from copies of the board's files, which are restored if one differs.
function(_mlfbuild_board TARGET)
  string(JSON board GET "${TARGET}" board)
  string(JSON tree GET "${TARGET}" tree)
  if(TARGET mlf_board OR NOT board)
    return()
  endif()
  _mlfbuild_list(sources "${TARGET}" board_files)
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME)
    configure_file("${source}" "${tree}/board/${name}" COPYONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${tree}/board/${name}")
  endforeach()
  set(MLF_BOARD ${board})
  include("${tree}/board/board.cmake")
endfunction()

# Define mlf::placement, from files that are restored if one differs.
function(_mlfbuild_placement TARGET)
  string(JSON tree GET "${TARGET}" tree)
  string(JSON count LENGTH "${TARGET}" placement_files)
  if(count EQUAL 0)
    return()
  endif()
  string(JSON script GET "${TARGET}" placement_files "placement/mlf_placement.ld")
  get_property(known GLOBAL PROPERTY MLFBUILD_PLACEMENT)
  if(known STREQUAL script)
    return()
  elseif(TARGET mlf_placement)
    string(JSON name GET "${TARGET}" target)
    _mlfbuild_stop("mlfbuild_models: target ${name} has other regions than a target before, and a link takes one "
                   "placement; give both project files the same sections and regions")
  endif()
  set_property(GLOBAL PROPERTY MLFBUILD_PLACEMENT "${script}")
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON path MEMBER "${TARGET}" placement_files ${index})
    string(JSON text GET "${TARGET}" placement_files "${path}")
    _mlfbuild_write("${tree}/${path}" "${text}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${tree}/${path}")
  endforeach()
  include("${tree}/placement/placement.cmake")
endfunction()
