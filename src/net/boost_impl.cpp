// The one translation unit that compiles Asio's and Beast's own sources (they are headers only).
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
