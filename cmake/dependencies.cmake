# The libraries, one per purpose; docs/adr/0001-libraries.md says why these.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
set(ZLIB_USE_STATIC_LIBS ON)
find_package(ZLIB REQUIRED)
if(NOT GPU_FUZZ)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()

# Debian ships fmt as a shared library only. Its headers carry the whole source, so we compile them
# once into a static library of our own: cheap to use everywhere, nothing to install beside the binary.
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(gpu_fmt STATIC "${PROJECT_SOURCE_DIR}/cmake/fmt_static.cpp")
  target_compile_features(gpu_fmt PUBLIC cxx_std_20)
  if(GPU_SANITIZE)
    target_compile_options(gpu_fmt PRIVATE -fsanitize=${GPU_SANITIZE})
  endif()
else()
  add_library(gpu_fmt INTERFACE)
  target_link_libraries(gpu_fmt INTERFACE fmt::fmt)
endif()

# --- the service: HTTP, TLS, databases, configuration, gRPC; all static, so that the binaries run
# on other distributions too. libpq is loaded at run time: a static one would drag Kerberos and LDAP in.
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.81 REQUIRED)
set(OPENSSL_USE_STATIC_LIBS ON)
find_package(OpenSSL 3 REQUIRED)
find_path(PQ_INCLUDE libpq-fe.h PATH_SUFFIXES postgresql REQUIRED)

# name: archives by their names, without `lib` and `.a`
function(gpu_static_library name)
  set(archives "")
  foreach(archive IN LISTS ARGN)
    find_library(GPU_ARCHIVE_${archive} NAMES lib${archive}.a REQUIRED)
    list(APPEND archives "${GPU_ARCHIVE_${archive}}")
  endforeach()
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE
    -Wl,--start-group ${archives} -Wl,--end-group ${CMAKE_DL_LIBS} Threads::Threads)
endfunction()

gpu_static_library(gpu_sqlite sqlite3)
gpu_static_library(gpu_yaml yaml-cpp)

add_library(gpu_boost INTERFACE)
target_include_directories(gpu_boost SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})
target_compile_definitions(gpu_boost INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_SEPARATE_COMPILATION)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A false alarm of g++ 12 about the memory of coroutine frames.
  target_compile_options(gpu_boost INTERFACE -Wno-mismatched-new-delete)
endif()
target_link_libraries(gpu_boost INTERFACE OpenSSL::SSL OpenSSL::Crypto Threads::Threads)

# Files that the binaries carry along, as texts in C++.
function(gpu_embed_text target file header name)
  set(output "${PROJECT_BINARY_DIR}/generated/${header}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  file(READ "${PROJECT_SOURCE_DIR}/${file}" text)
  file(CONFIGURE OUTPUT "${output}" CONTENT
    "#pragma once\ninline constexpr const char* ${name} = R\"embedded(@text@)embedded\";\n" @ONLY)
  target_include_directories(${target} SYSTEM PRIVATE "${PROJECT_BINARY_DIR}/generated")
endfunction()
