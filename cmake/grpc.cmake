# gRPC and the code generated from api/proto, linked statically.

find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# What gRPC needs besides itself, as its own package description says it.
find_package(PkgConfig REQUIRED)
pkg_check_modules(GRPC_NEEDS REQUIRED grpc++ protobuf)
set(grpc_archives grpc++_reflection)
foreach(library IN LISTS GRPC_NEEDS_STATIC_LIBRARIES)
  if(NOT library MATCHES "^(dl|rt|m|pthread|atomic)$")
    list(APPEND grpc_archives ${library})
  endif()
endforeach()
list(APPEND grpc_archives ssl crypto)  # inside the group: before gRPC they would be passed over
list(REMOVE_DUPLICATES grpc_archives)
gpu_static_library(gpu_grpc ${grpc_archives})

set(GPU_GENERATED "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${GPU_GENERATED}")
set(generated_sources "")
foreach(name scheduler agent podresources)
  set(proto "${PROJECT_SOURCE_DIR}/api/proto/${name}.proto")
  set(outputs "${GPU_GENERATED}/${name}.pb.cc" "${GPU_GENERATED}/${name}.pb.h"
              "${GPU_GENERATED}/${name}.grpc.pb.cc" "${GPU_GENERATED}/${name}.grpc.pb.h")
  add_custom_command(OUTPUT ${outputs}
    COMMAND ${PROTOC} --proto_path=${PROJECT_SOURCE_DIR}/api/proto
            --cpp_out=${GPU_GENERATED} --grpc_out=${GPU_GENERATED}
            --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
    DEPENDS "${proto}" VERBATIM)
  list(APPEND generated_sources ${outputs})
endforeach()
add_custom_target(generated DEPENDS ${generated_sources})  # what clang-tidy needs of a build
add_library(gpu_proto STATIC ${generated_sources})
target_compile_features(gpu_proto PUBLIC cxx_std_20)
target_include_directories(gpu_proto SYSTEM PUBLIC "${GPU_GENERATED}")
target_link_libraries(gpu_proto PUBLIC gpu_grpc)
if(GPU_SANITIZE)
  target_compile_options(gpu_proto PRIVATE -fsanitize=${GPU_SANITIZE})
endif()
