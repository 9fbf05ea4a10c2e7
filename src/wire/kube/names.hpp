// The names that users and other programs meet: annotations, labels, groups and versions.
#pragma once

namespace gs::kube {

// --- on pods, by users ---
inline constexpr const char* kClaimAnnotation = "gpu.scheduling/claim";
inline constexpr const char* kGangAnnotation = "gpu.scheduling/gang";  // "true", or a gang's name
inline constexpr const char* kGangSizeAnnotation = "gpu.scheduling/gang-size";
inline constexpr const char* kRuntimeAnnotation = "gpu.scheduling/expected-runtime";
inline constexpr const char* kMapAnnotation = "gpu-scheduling-map";
inline constexpr const char* kTopologyPrefix = "topology.scheduler/";
inline constexpr const char* kPreferredDomainAnnotation = "topology.scheduler/preferred-domain";

// --- on pods, by the scheduler, in the Binding ---
inline constexpr const char* kAllocatedAnnotation = "gpu.scheduling/allocated";
inline constexpr const char* kVisibleDevicesAnnotation = "gpu.scheduling/visible-devices";
// The same devices, as a container calls them that sees no others.
inline constexpr const char* kContainerDevicesAnnotation = "gpu.scheduling/container-devices";
inline constexpr const char* kIndexAnnotation = "gpu.scheduling/index";  // of the map
inline constexpr const char* kInstancesAnnotation = "gpu.scheduling/mig";
inline constexpr const char* kHcaAnnotation = "gpu.scheduling/ib-hca";
inline constexpr const char* kGivenAnnotations[] = {
    kAllocatedAnnotation, kVisibleDevicesAnnotation, kContainerDevicesAnnotation,
    kIndexAnnotation,     kInstancesAnnotation,      kHcaAnnotation};

// Changed to stop a Binding that is under way, before the pod's lease is broken.
inline constexpr const char* kLeaseBrokenAnnotation = "gpu.scheduling/lease-broken";

// --- on leases ---
inline constexpr const char* kManagedLabel = "gpu.scheduling/managed";
inline constexpr const char* kLeaseNodeAnnotation = "gpu.scheduling/node";
inline constexpr const char* kLeaseGpuAnnotation = "gpu.scheduling/gpu";
inline constexpr const char* kLeasePodAnnotation = "gpu.scheduling/pod";         // namespace/name
inline constexpr const char* kSchedulerAnnotation = "gpu.scheduling/scheduler";  // who made it
inline constexpr const char* kHoldersAnnotation = "gpu.scheduling/holders";

// --- on namespaces ---
inline constexpr const char* kTenantLabel = "gpu.scheduling/tenant";

inline constexpr const char* kGpuApi = "gpu.scheduling/v1";
inline constexpr const char* kTopologyApi = "topology.scheduler/v1alpha1";

}  // namespace gs::kube
