// libpq, loaded when it is first needed: who uses SQLite need not have it.
#pragma once

#include <libpq-fe.h>

#include "base/result.hpp"

namespace gs::store {

struct Libpq {
  decltype(&::PQconnectdbParams) connectdb_params;
  decltype(&::PQfinish) finish;
  decltype(&::PQstatus) status;
  decltype(&::PQerrorMessage) error_message;
  decltype(&::PQsocket) socket;
  decltype(&::PQexec) exec;
  decltype(&::PQprepare) prepare;
  decltype(&::PQsendQueryParams) send_query_params;
  decltype(&::PQsendQueryPrepared) send_query_prepared;
  decltype(&::PQenterPipelineMode) enter_pipeline_mode;
  decltype(&::PQexitPipelineMode) exit_pipeline_mode;
  decltype(&::PQpipelineSync) pipeline_sync;
  decltype(&::PQsetnonblocking) set_nonblocking;
  decltype(&::PQflush) flush;
  decltype(&::PQconsumeInput) consume_input;
  decltype(&::PQisBusy) is_busy;
  decltype(&::PQgetResult) get_result;
  decltype(&::PQresultStatus) result_status;
  decltype(&::PQresultErrorField) result_error_field;
  decltype(&::PQresultErrorMessage) result_error_message;
  decltype(&::PQntuples) ntuples;
  decltype(&::PQgetvalue) getvalue;
  decltype(&::PQgetlength) getlength;
  decltype(&::PQgetisnull) getisnull;
  decltype(&::PQcmdTuples) cmd_tuples;
  decltype(&::PQclear) clear;
  decltype(&::PQbackendPID) backend_pid;
  decltype(&::PQsetNoticeProcessor) set_notice_processor;
};

// Unavailable where the library is missing; the message names its package.
Result<const Libpq*> libpq();

}  // namespace gs::store
