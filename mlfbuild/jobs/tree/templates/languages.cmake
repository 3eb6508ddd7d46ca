
get_property(_mlf_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
foreach(_mlf_language IN ITEMS {{ languages }})
  if(NOT _mlf_language IN_LIST _mlf_languages)
    message(FATAL_ERROR "${CMAKE_CURRENT_LIST_FILE} needs the language ${_mlf_language}: "
                        "project(<name> LANGUAGES {{ languages }})")
  endif()
endforeach()
