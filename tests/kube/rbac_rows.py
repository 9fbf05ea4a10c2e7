"""What each service account of the chart may do, and what it may not: answer, account, verb, resource."""

ROWS = """
yes  gpu-scheduler        create bindings
yes  gpu-scheduler        create pods/binding
yes  gpu-scheduler        create pods/eviction
yes  gpu-scheduler        list   pods
yes  gpu-scheduler        watch  pods
yes  gpu-scheduler        patch  pods
yes  gpu-scheduler        patch  pods/status
no   gpu-scheduler        update pods/status
no   gpu-scheduler        create pods
no   gpu-scheduler        delete pods
no   gpu-scheduler        update pods
no   gpu-scheduler        create pods/exec
yes  gpu-scheduler        watch  nodes
no   gpu-scheduler        patch  nodes
no   gpu-scheduler        update nodes/status
yes  gpu-scheduler        watch  namespaces
yes  gpu-scheduler        patch  persistentvolumeclaims
no   gpu-scheduler        create persistentvolumeclaims
yes  gpu-scheduler        watch  persistentvolumes
yes  gpu-scheduler        patch  persistentvolumes
no   gpu-scheduler        delete persistentvolumes
yes  gpu-scheduler        watch  storageclasses.storage.k8s.io
no   gpu-scheduler        watch  csinodes.storage.k8s.io
no   gpu-scheduler        watch  csistoragecapacities.storage.k8s.io
yes  gpu-scheduler        watch  priorityclasses.scheduling.k8s.io
yes  gpu-scheduler        watch  poddisruptionbudgets.policy
yes  gpu-scheduler        watch  jobs.batch
yes  gpu-scheduler        watch  deployments.apps
yes  gpu-scheduler        watch  statefulsets.apps
yes  gpu-scheduler        watch  replicasets.apps
no   gpu-scheduler        patch  deployments.apps
yes  gpu-scheduler        create events.events.k8s.io
no   gpu-scheduler        create events
no   gpu-scheduler        patch  events.events.k8s.io
yes  gpu-scheduler        watch  gpuclaims.gpu.scheduling
yes  gpu-scheduler        patch  gpuclaims.gpu.scheduling/status
no   gpu-scheduler        update gpuclaims.gpu.scheduling/status
no   gpu-scheduler        create gpuclaims.gpu.scheduling
no   gpu-scheduler        patch  gpuclaims.gpu.scheduling
yes  gpu-scheduler        watch  gpunodestatuses.gpu.scheduling
no   gpu-scheduler        patch  gpunodestatuses.gpu.scheduling
yes  gpu-scheduler        watch  gputenants.gpu.scheduling
yes  gpu-scheduler        patch  gputenants.gpu.scheduling/status
no   gpu-scheduler        patch  gputenants.gpu.scheduling
yes  gpu-scheduler        watch  schedulerconfigs.topology.scheduler
yes  gpu-scheduler        patch  topologyschedulerconfigs.topology.scheduler/status
no   gpu-scheduler        patch  schedulerconfigs.topology.scheduler
no   gpu-scheduler        create leases.coordination.k8s.io
yes  gpu-scheduler        create leases.coordination.k8s.io   -n gpu-scheduler
yes  gpu-scheduler        delete leases.coordination.k8s.io   -n gpu-scheduler
no   gpu-scheduler        get    configmaps
no   gpu-scheduler        get    configmaps                   -n gpu-scheduler
yes  gpu-scheduler        watch  configmaps/topology-scheduler-config  -n gpu-scheduler
yes  gpu-scheduler        watch  configmaps/topology-scheduler-config  -n kube-system
no   gpu-scheduler        get    configmaps/other             -n kube-system
no   gpu-scheduler        get    secrets
no   gpu-scheduler        get    secrets                      -n gpu-scheduler
no   gpu-scheduler        create serviceaccounts/token        -n gpu-scheduler
yes  gpu-scheduler-agent  create gpunodestatuses.gpu.scheduling
yes  gpu-scheduler-agent  patch  gpunodestatuses.gpu.scheduling
yes  gpu-scheduler-agent  patch  gpunodestatuses.gpu.scheduling/status
no   gpu-scheduler-agent  delete gpunodestatuses.gpu.scheduling
yes  gpu-scheduler-agent  get    nodes
no   gpu-scheduler-agent  patch  nodes
yes  gpu-scheduler-agent  list   pods
no   gpu-scheduler-agent  patch  pods
no   gpu-scheduler-agent  create bindings
no   gpu-scheduler-agent  get    gpuclaims.gpu.scheduling
no   gpu-scheduler-agent  get    secrets                      -n gpu-scheduler
no   gpu-scheduler-agent  create leases.coordination.k8s.io   -n gpu-scheduler
"""
WEBHOOK_ROWS = """
yes  gpu-scheduler-webhook  get    gpuclaims.gpu.scheduling
no   gpu-scheduler-webhook  patch  gpuclaims.gpu.scheduling
no   gpu-scheduler-webhook  list   pods
no   gpu-scheduler-webhook  create bindings
yes  gpu-scheduler-webhook  patch  mutatingwebhookconfigurations.admissionregistration.k8s.io/gpu-scheduler-webhook
yes  gpu-scheduler-webhook  patch  validatingwebhookconfigurations.admissionregistration.k8s.io/gpu-scheduler-webhook
no   gpu-scheduler-webhook  patch  mutatingwebhookconfigurations.admissionregistration.k8s.io/other
no   gpu-scheduler-webhook  create mutatingwebhookconfigurations.admissionregistration.k8s.io
yes  gpu-scheduler-webhook  create secrets                             -n gpu-scheduler
yes  gpu-scheduler-webhook  get    secrets/gpu-scheduler-webhook-tls   -n gpu-scheduler
yes  gpu-scheduler-webhook  update secrets/gpu-scheduler-webhook-tls   -n gpu-scheduler
no   gpu-scheduler-webhook  get    secrets/other                       -n gpu-scheduler
no   gpu-scheduler-webhook  list   secrets                             -n gpu-scheduler
no   gpu-scheduler-webhook  create secrets
"""
