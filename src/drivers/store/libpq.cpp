#include "drivers/store/libpq.hpp"

#include <string>

#include <dlfcn.h>

namespace gs::store {
namespace {

template <typename Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<Libpq> load_all_functions() {
  void* library = ::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{
        ErrorCode::Unavailable,
        std::string("PostgreSQL needs its client library (Debian package libpq5): ") + ::dlerror()};
  Libpq pq{};
  const bool all =
      load(library, "PQconnectdbParams", pq.connectdb_params) &&
      load(library, "PQfinish", pq.finish) && load(library, "PQstatus", pq.status) &&
      load(library, "PQerrorMessage", pq.error_message) && load(library, "PQsocket", pq.socket) &&
      load(library, "PQexec", pq.exec) && load(library, "PQprepare", pq.prepare) &&
      load(library, "PQsendQueryParams", pq.send_query_params) &&
      load(library, "PQsendQueryPrepared", pq.send_query_prepared) &&
      load(library, "PQenterPipelineMode", pq.enter_pipeline_mode) &&
      load(library, "PQexitPipelineMode", pq.exit_pipeline_mode) &&
      load(library, "PQpipelineSync", pq.pipeline_sync) &&
      load(library, "PQsetnonblocking", pq.set_nonblocking) && load(library, "PQflush", pq.flush) &&
      load(library, "PQconsumeInput", pq.consume_input) && load(library, "PQisBusy", pq.is_busy) &&
      load(library, "PQgetResult", pq.get_result) &&
      load(library, "PQresultStatus", pq.result_status) &&
      load(library, "PQresultErrorField", pq.result_error_field) &&
      load(library, "PQresultErrorMessage", pq.result_error_message) &&
      load(library, "PQntuples", pq.ntuples) && load(library, "PQgetvalue", pq.getvalue) &&
      load(library, "PQgetlength", pq.getlength) && load(library, "PQgetisnull", pq.getisnull) &&
      load(library, "PQcmdTuples", pq.cmd_tuples) && load(library, "PQclear", pq.clear) &&
      load(library, "PQbackendPID", pq.backend_pid) &&
      load(library, "PQsetNoticeProcessor", pq.set_notice_processor);
  if (!all)
    return Error{ErrorCode::Unavailable,
                 std::string("libpq is too old, version 14 is needed (Debian package libpq5): ") +
                     ::dlerror()};
  return pq;
}

}  // namespace

Result<const Libpq*> libpq() {
  static const Result<Libpq> loaded = load_all_functions();
  if (!loaded) return loaded.error();
  return &*loaded;
}

}  // namespace gs::store
