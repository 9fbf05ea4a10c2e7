// Why there is no answer, in words: what the clients tell when a server can't be reached, is too
// slow or cuts them off. All of it has the code Unavailable.
#pragma once

#include <string>

#include <boost/system/error_code.hpp>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/http_client.hpp"

namespace gs {

Error unreachable(const HttpUrl& server, const std::string& what);
Error too_slow(const HttpUrl& server, Duration limit);
// Of an operation on a connection that was open.
Error failure(const HttpUrl& server, const boost::system::error_code& error);

}  // namespace gs
