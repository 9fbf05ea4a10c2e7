// Claims and volumes: which nodes they leave, which volume is taken, and why a pod waits.
#include "drivers/kubernetes/volumes.hpp"

#include <gtest/gtest.h>

namespace gs::kube {
namespace {

class VolumesTest : public testing::Test {
 protected:
  VolumesTest() {
    for (const char* name : {"n1", "n2"}) {
      nodes_[name].name = name;
      nodes_[name].labels = {{"kubernetes.io/hostname", name}};
    }
    pod_.meta.ns = "ml";
    pod_.meta.uid = "uid-a";
    pod_.volume_claims = {"data"};
  }

  void put_class(const std::string& provisioner, bool waits) {
    StorageClass klass;
    klass.meta.name = "local";
    klass.provisioner = provisioner;
    klass.wait_for_pod = waits;
    volumes_.put(klass);
  }
  PersistentVolumeClaim claim() {
    PersistentVolumeClaim claim;
    claim.meta.ns = "ml";
    claim.meta.name = "data";
    claim.meta.uid = "uid-data";
    claim.storage_class = "local";
    claim.has_class = true;
    claim.access_modes = {"ReadWriteOnce"};
    claim.size = Quantity::units(10);
    return claim;
  }
  PersistentVolume volume(const std::string& name, const std::string& node, int size) {
    PersistentVolume volume;
    volume.meta.name = name;
    volume.storage_class = "local";
    volume.phase = "Available";
    volume.access_modes = {"ReadWriteOnce"};
    volume.size = Quantity::units(size);
    if (!node.empty())
      volume.nodes = {NodeTerm{{{"kubernetes.io/hostname", LabelOp::In, {node}}}, {}}};
    return volume;
  }
  // "-": it can't go there; else the volumes that are taken.
  std::string chosen(const std::string& node) {
    const auto choices = volumes_.choose(pod_, nodes_[node]);
    if (!choices) return "-";
    std::string text;
    for (const VolumeChoice& choice : *choices) text += choice.claim + "=" + choice.volume;
    return text;
  }

  Volumes volumes_;
  std::map<std::string, gs::Node> nodes_;
  Pod pod_;
};

TEST_F(VolumesTest, what_is_missing_is_named) {
  EXPECT_EQ(volumes_.waits_for(pod_), "PersistentVolumeClaim ml/data does not exist");
  volumes_.put(claim());
  EXPECT_EQ(volumes_.waits_for(pod_),
            "StorageClass local of PersistentVolumeClaim ml/data does not exist");
  put_class("example.com/disk", false);
  EXPECT_EQ(volumes_.waits_for(pod_), "PersistentVolumeClaim ml/data is not bound to a volume yet");
  put_class("example.com/disk", true);
  EXPECT_EQ(volumes_.waits_for(pod_), "");
}

TEST_F(VolumesTest, a_bound_claim_leads_to_the_nodes_of_its_volume) {
  PersistentVolumeClaim bound = claim();
  bound.bound = true;
  bound.volume = "v1";
  volumes_.put(bound);
  volumes_.put(volume("v1", "n2", 10));
  EXPECT_TRUE(volumes_.concern(pod_));
  EXPECT_EQ(chosen("n1"), "-");
  EXPECT_EQ(chosen("n2"), "");
  volumes_.put(volume("v1", "", 10));
  EXPECT_FALSE(volumes_.concern(pod_)) << "reached from everywhere";
}

TEST_F(VolumesTest, a_waiting_claim_gets_the_smallest_volume_that_fits_on_the_node) {
  put_class("kubernetes.io/no-provisioner", true);
  volumes_.put(claim());
  EXPECT_EQ(chosen("n1"), "-");
  volumes_.put(volume("big", "n1", 100));
  volumes_.put(volume("right", "n1", 20));
  volumes_.put(volume("small", "n1", 5));
  EXPECT_EQ(chosen("n1"), "data=right");
  EXPECT_EQ(chosen("n2"), "-");
  PersistentVolume taken = volume("right", "n1", 20);
  taken.claim_namespace = "other";
  taken.claim_name = "data";
  volumes_.put(taken);
  EXPECT_EQ(chosen("n1"), "data=big");
}

TEST_F(VolumesTest, a_block_device_and_a_file_system_are_not_the_same) {
  put_class("kubernetes.io/no-provisioner", true);
  PersistentVolumeClaim raw = claim();
  raw.volume_mode = "Block";
  volumes_.put(raw);
  volumes_.put(volume("files", "n1", 10));
  EXPECT_EQ(chosen("n1"), "-");
  PersistentVolume device = volume("device", "n1", 20);
  device.volume_mode = "Block";
  volumes_.put(device);
  EXPECT_EQ(chosen("n1"), "data=device") << "although the other one is smaller";
  volumes_.put(claim());
  EXPECT_EQ(chosen("n1"), "data=files");
  volumes_.remove_volume("files");
  EXPECT_EQ(chosen("n1"), "-");
  device.claim_namespace = "ml";
  device.claim_name = "data";
  volumes_.put(device);
  EXPECT_EQ(chosen("n1"), "-") << "its claimRef does not help";
}

TEST_F(VolumesTest, a_volume_is_made_where_somebody_makes_them) {
  put_class("example.com/disk", true);
  volumes_.put(claim());
  EXPECT_EQ(chosen("n1"), "data=");
  PersistentVolumeClaim selected = claim();
  set_label(selected.meta.annotations, kSelectedNodeAnnotation, "n2");
  volumes_.put(selected);
  EXPECT_EQ(chosen("n1"), "-") << "it is being made elsewhere";
  EXPECT_EQ(chosen("n2"), "data=");
}

TEST_F(VolumesTest, what_was_chosen_for_one_is_not_chosen_for_another) {
  put_class("kubernetes.io/no-provisioner", true);
  volumes_.put(claim());
  volumes_.put(volume("v1", "n1", 10));
  volumes_.assume(pod_, *volumes_.choose(pod_, nodes_["n1"]));
  EXPECT_EQ(chosen("n1"), "data=v1") << "its own";
  pod_.meta.uid = "uid-b";
  EXPECT_EQ(chosen("n1"), "-");
  volumes_.forget("uid-a");
  EXPECT_EQ(chosen("n1"), "data=v1");
}

TEST_F(VolumesTest, a_claim_for_one_pod_serves_one_pod_at_a_time) {
  PersistentVolumeClaim once = claim();
  once.access_modes = {"ReadWriteOncePod"};
  once.bound = true;
  once.volume = "v1";
  volumes_.put(once);
  volumes_.put(volume("v1", "", 10));
  volumes_.assume(pod_, {});
  EXPECT_EQ(volumes_.waits_for(pod_), "");
  pod_.meta.uid = "uid-b";
  EXPECT_NE(volumes_.waits_for(pod_).find("ReadWriteOncePod"), std::string::npos);
  EXPECT_EQ(chosen("n1"), "-");
  volumes_.forget("uid-a");
  EXPECT_EQ(chosen("n1"), "");
}

}  // namespace
}  // namespace gs::kube
