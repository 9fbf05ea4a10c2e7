// The few functions and structures of NVML that we use, declared here so that no CUDA is needed to
// build. The library is loaded at run time; a function that an old driver lacks is null.
#pragma once

#include <dlfcn.h>

namespace gs::agent::nvml {

using Return = int;
inline constexpr Return kSuccess = 0, kTimeout = 10, kGpuIsLost = 15;

using Device = void*;
using EventSet = void*;
using GpuInstance = void*;
using ComputeInstance = void*;
using Large = unsigned long long;

struct Memory {
  Large total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct Pci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct ProcessInfo {
  unsigned pid;
  Large used_memory;
  unsigned gpu_instance, compute_instance;
};
struct EventData {
  Device device;
  Large type, data;
  unsigned gpu_instance, compute_instance;
};
struct Placement {
  unsigned start, size;
};
struct GpuInstanceInfo {
  Device device;
  unsigned id, profile;
  Placement placement;
};
struct GpuInstanceProfile {
  unsigned id, peer_to_peer, slices, instances, multiprocessors, copy_engines, decoders, encoders,
      jpegs, ofas;
  Large memory_mb;
};
struct ComputeInstanceProfile {
  unsigned id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
};

inline constexpr Large kEventDoubleBitEcc = 0x2, kEventXid = 0x8;
inline constexpr unsigned kMaxLinks = 18, kTemperatureGpu = 0, kEccUncorrected = 1,
                          kEccVolatile = 0;
inline constexpr int kRemoteIsSwitch = 2;
inline constexpr Large kThermalReasons = 0x20 | 0x40;  // slowed down by software, by hardware
inline constexpr unsigned kGpuInstanceProfiles = 16;

// clang-format off: one function to a line
#define NVML_FUNCTIONS(F)                                                                    \
  F(Return, nvmlInit_v2, ())                                                                 \
  F(Return, nvmlShutdown, ())                                                                \
  F(const char*, nvmlErrorString, (Return))                                                  \
  F(Return, nvmlSystemGetDriverVersion, (char*, unsigned))                                   \
  F(Return, nvmlDeviceGetCount_v2, (unsigned*))                                              \
  F(Return, nvmlDeviceGetHandleByIndex_v2, (unsigned, Device*))                              \
  F(Return, nvmlDeviceGetName, (Device, char*, unsigned))                                    \
  F(Return, nvmlDeviceGetUUID, (Device, char*, unsigned))                                    \
  F(Return, nvmlDeviceGetMemoryInfo, (Device, Memory*))                                      \
  F(Return, nvmlDeviceGetTemperature, (Device, unsigned, unsigned*))                         \
  F(Return, nvmlDeviceGetUtilizationRates, (Device, Utilization*))                           \
  F(Return, nvmlDeviceGetPowerUsage, (Device, unsigned*))                                    \
  F(Return, nvmlDeviceGetTotalEccErrors, (Device, unsigned, unsigned, Large*))               \
  F(Return, nvmlDeviceGetRemappedRows, (Device, unsigned*, unsigned*, unsigned*, unsigned*)) \
  F(Return, nvmlDeviceGetPciInfo_v3, (Device, Pci*))                                         \
  F(Return, nvmlDeviceGetCudaComputeCapability, (Device, int*, int*))                        \
  F(Return, nvmlDeviceGetNumGpuCores, (Device, unsigned*))                                   \
  F(Return, nvmlDeviceGetCurrentClocksThrottleReasons, (Device, Large*))                     \
  F(Return, nvmlDeviceGetNvLinkState, (Device, unsigned, unsigned*))                         \
  F(Return, nvmlDeviceGetNvLinkRemotePciInfo_v2, (Device, unsigned, Pci*))                   \
  F(Return, nvmlDeviceGetNvLinkRemoteDeviceType, (Device, unsigned, int*))                   \
  F(Return, nvmlDeviceGetTopologyCommonAncestor, (Device, Device, int*))                     \
  F(Return, nvmlDeviceGetMaxPcieLinkGeneration, (Device, unsigned*))                         \
  F(Return, nvmlDeviceGetMaxPcieLinkWidth, (Device, unsigned*))                              \
  F(Return, nvmlDeviceGetComputeRunningProcesses_v3, (Device, unsigned*, ProcessInfo*))      \
  F(Return, nvmlDeviceGetMigMode, (Device, unsigned*, unsigned*))                            \
  F(Return, nvmlDeviceGetMaxMigDeviceCount, (Device, unsigned*))                             \
  F(Return, nvmlDeviceGetMigDeviceHandleByIndex, (Device, unsigned, Device*))                \
  F(Return, nvmlDeviceGetGpuInstanceId, (Device, unsigned*))                                 \
  F(Return, nvmlDeviceGetGpuInstanceById, (Device, unsigned, GpuInstance*))                  \
  F(Return, nvmlGpuInstanceGetInfo, (GpuInstance, GpuInstanceInfo*))                         \
  F(Return, nvmlDeviceGetGpuInstanceProfileInfo, (Device, unsigned, GpuInstanceProfile*))    \
  F(Return, nvmlDeviceCreateGpuInstanceWithPlacement,                                        \
    (Device, unsigned, const Placement*, GpuInstance*))                                      \
  F(Return, nvmlGpuInstanceDestroy, (GpuInstance))                                           \
  F(Return, nvmlGpuInstanceGetComputeInstanceProfileInfo,                                    \
    (GpuInstance, unsigned, unsigned, ComputeInstanceProfile*))                              \
  F(Return, nvmlGpuInstanceCreateComputeInstance, (GpuInstance, unsigned, ComputeInstance*)) \
  F(Return, nvmlGpuInstanceGetComputeInstances,                                              \
    (GpuInstance, unsigned, ComputeInstance*, unsigned*))                                    \
  F(Return, nvmlComputeInstanceDestroy, (ComputeInstance))                                   \
  F(Return, nvmlEventSetCreate, (EventSet*))                                                 \
  F(Return, nvmlEventSetFree, (EventSet))                                                    \
  F(Return, nvmlDeviceRegisterEvents, (Device, Large, EventSet))                             \
  F(Return, nvmlEventSetWait_v2, (EventSet, EventData*, unsigned))
// clang-format on

// Declarations have no parentheses around their parts.
// NOLINTBEGIN(bugprone-macro-parentheses)
struct Api {
#define NVML_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  NVML_FUNCTIONS(NVML_MEMBER)
#undef NVML_MEMBER

  void load(void* library) {
#define NVML_LOAD(result, name, arguments) \
  name = reinterpret_cast<result(*) arguments>(::dlsym(library, #name));
    NVML_FUNCTIONS(NVML_LOAD)
#undef NVML_LOAD
  }
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace gs::agent::nvml
