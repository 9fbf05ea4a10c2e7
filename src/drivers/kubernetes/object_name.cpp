#include "drivers/kubernetes/object_name.hpp"

#include "wire/kube/cursor.hpp"

namespace gs::kube {
namespace {

// The text between the quotes; names and versions have nothing that would be escaped.
void read_view(Cursor& in, std::string_view& out) {
  const bool is_text = in.next() == '"';
  const std::string_view value = in.raw();
  if (is_text && value.size() >= 2) out = value.substr(1, value.size() - 2);
}

}  // namespace

Result<ObjectName> read_object_name(std::string_view object) {
  ObjectName out;
  bool is_found = false;
  Cursor in(object);
  in.object([&](std::string_view field) {
    if (field != "metadata") return;
    in.object([&](std::string_view inner) {
      if (inner == "name") read_view(in, out.name);
      if (inner == "namespace") read_view(in, out.ns);
      if (inner == "uid") read_view(in, out.uid);
      if (inner == "resourceVersion") read_view(in, out.resource_version);
    });
    is_found = !in.failed();
    // Metadata comes first, and what follows it is most of the object: don't step over all of it.
    in.fail("is not looked at");
  });
  if (!is_found)
    return invalid("not an object of the API server: '" + std::string(object.substr(0, 100)) + "'");
  return out;
}

}  // namespace gs::kube
