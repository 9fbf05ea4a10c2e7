// The way to the scheduler.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "agent/options.hpp"

namespace gs::agent {

// A fresh one for each try: the waiting between tries is ours.
std::shared_ptr<grpc::Channel> connect(const Options& options);

// The address by which other machines reach this one: as the options say, or that by which we
// reach the scheduler.
std::string own_address(const Options& options);

}  // namespace gs::agent
