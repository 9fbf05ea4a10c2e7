# Language, warnings, optimisation, sanitizers, ccache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache asks for where precompiled headers are used. What one checkout has
  # compiled serves every other one: paths inside it don't count.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

# CHECK stays on in every build type: it does not look at NDEBUG.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

add_library(gpu_flags INTERFACE)
target_include_directories(gpu_flags INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_compile_options(gpu_flags INTERFACE
  -Wall -Wextra -Wpedantic -Werror
  -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  $<$<NOT:$<CONFIG:Release>>:-fno-omit-frame-pointer>)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(gpu_flags INTERFACE -march=x86-64-v2)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of g++ 12 from inside inlined standard containers; AddressSanitizer covers the rest.
  target_compile_options(gpu_flags INTERFACE
    -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-maybe-uninitialized -Wno-dangling-pointer)
endif()

if(GPU_SANITIZE)
  target_compile_options(gpu_flags INTERFACE
    -fsanitize=${GPU_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(gpu_flags INTERFACE -fsanitize=${GPU_SANITIZE})
  if(GPU_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Asio's fences are beside mutexes that ThreadSanitizer does see.
    target_compile_options(gpu_flags INTERFACE -Wno-tsan)
  endif()
endif()
