#include "agent/identity.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

namespace gs::agent {
namespace {

Identity from_entry(const passwd& entry) {
  Identity identity;
  identity.uid = entry.pw_uid;
  identity.gid = entry.pw_gid;
  identity.name = entry.pw_name;
  identity.home = entry.pw_dir;
  identity.shell = entry.pw_shell;
  return identity;
}

std::vector<gid_t> groups_of(const Identity& identity) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (::getgrouplist(identity.name.c_str(), identity.gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));
    if (::getgrouplist(identity.name.c_str(), identity.gid, groups.data(), &count) < 0) count = 0;
  }
  groups.resize(static_cast<std::size_t>(count));
  return groups;
}

Identity ourselves() {
  const passwd* entry = ::getpwuid(::geteuid());  // NOLINT(concurrency-mt-unsafe): one thread
  if (entry != nullptr) return from_entry(*entry);
  Identity identity;
  identity.uid = ::geteuid();
  identity.gid = ::getegid();
  identity.name = std::to_string(identity.uid);
  identity.home = "/";
  identity.shell = "/bin/sh";
  return identity;
}

}  // namespace

Result<Identity> identity_for(const TaskOrder& order) {
  const bool we_are_root = ::geteuid() == 0;
  std::string wanted = order.user;
  if (wanted.empty() && we_are_root && !order.allow_root) wanted = order.default_user;
  if (wanted.empty()) return ourselves();

  const passwd* entry = ::getpwnam(wanted.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
  if (entry == nullptr) return invalid(fmt::format("this machine has no user {:?}", wanted));
  Identity identity = from_entry(*entry);
  if (identity.uid == ::geteuid() && !we_are_root) return identity;
  if (!we_are_root)
    return invalid(
        fmt::format("the agent does not run as root and cannot start a task as {:?}", wanted));
  if (identity.uid == 0 && !order.allow_root)
    return invalid("tasks may not run as root on this machine (the agent's --allow-root)");
  identity.groups = groups_of(identity);
  identity.change = identity.uid != 0;
  return identity;
}

}  // namespace gs::agent
