// Following what pods bring along: volumes, pod groups and their priority classes.
#include "drivers/kubernetes/object_change.hpp"
#include "drivers/kubernetes/scheduler.hpp"

namespace gs::kube {

void Scheduler::follow_volumes() {
  const Resource claims{"", "v1", "persistentvolumeclaims", true};
  follow(claims, {}, {}, [this](const ObjectChange& change) {
    if (is_end(change))
      return post([this, ns = std::string(change.name_space), name = std::string(change.name)] {
        desk_.remove_volume_claim(ns, name);
      });
    Result<PersistentVolumeClaim> claim = decode_volume_claim(change.object);
    if (!readable(claim, change, "PersistentVolumeClaim")) return;
    post([this, claim = std::move(*claim)] { desk_.put(claim); });
  });
  const Resource volumes{"", "v1", "persistentvolumes", false};
  follow(volumes, {}, {}, [this](const ObjectChange& change) {
    if (is_end(change))
      return post([this, name = std::string(change.name)] { desk_.remove_volume(name); });
    Result<PersistentVolume> volume = decode_volume(change.object);
    if (!readable(volume, change, "PersistentVolume")) return;
    post([this, volume = std::move(*volume)] { desk_.put(volume); });
  });
  const Resource classes{"storage.k8s.io", "v1", "storageclasses", false};
  follow(classes, {}, {}, [this](const ObjectChange& change) {
    if (is_end(change))
      return post([this, name = std::string(change.name)] { desk_.remove_storage_class(name); });
    Result<StorageClass> klass = decode_storage_class(change.object);
    if (!readable(klass, change, "StorageClass")) return;
    post([this, klass = std::move(*klass)] { desk_.put(klass); });
  });
}

void Scheduler::follow_pod_groups() {
  const std::vector<Resource> styles = {{"scheduling.x-k8s.io", "v1alpha1", "podgroups", true},
                                        {"scheduling.volcano.sh", "v1beta1", "podgroups", true},
                                        {"scheduling.run.ai", "v2alpha2", "podgroups", true}};
  for (const Resource& style : styles)
    follow(
        style, {}, {},
        [this](const ObjectChange& change) {
          if (is_end(change))
            return post(
                [this, ns = std::string(change.name_space), name = std::string(change.name)] {
                  reconsider(objects_.remove_pod_group(ns, name));
                });
          Result<PodGroup> group = decode_pod_group(change.object);
          if (!readable(group, change, "PodGroup")) return;
          post([this, group = std::move(*group)] { reconsider(objects_.put(group)); });
        },
        Need::IfServed);
  const Resource classes{"scheduling.k8s.io", "v1", "priorityclasses", false};
  follow(classes, {}, {}, [this](const ObjectChange& change) {
    if (is_end(change))
      return post([this, name = std::string(change.name)] {
        reconsider(objects_.remove_priority_class(name));
      });
    Result<PriorityClass> klass = decode_priority_class(change.object);
    if (!readable(klass, change, "PriorityClass")) return;
    post([this, klass = std::move(*klass)] { reconsider(objects_.put(klass)); });
  });
}

}  // namespace gs::kube
