// The demo's story: what arrives and what breaks, chapter by chapter, as scenario lines.
#pragma once

#include <array>

namespace gs {

struct Chapter {
  const char* title;
  const char* lines;
};

inline constexpr std::array kDemoStory = {
    Chapter{"A cluster of 64 GPUs: 2 spines x 2 leaves x 2 nodes x 8 GPUs, three tenants",
            R"(topology spine leaf
node n[1..2] gpus=8 cpu=64 memory=512GiB islands=4+4 domain=spine-1/leaf-1
node n[3..4] gpus=8 cpu=64 memory=512GiB islands=4+4 domain=spine-1/leaf-2
node n[5..6] gpus=8 cpu=64 memory=512GiB islands=4+4 domain=spine-2/leaf-3
node n[7..8] gpus=8 cpu=64 memory=512GiB islands=4+4 domain=spine-2/leaf-4
  gpu 7 mig-dynamic
tenant research guaranteed=48
tenant product guaranteed=16 tier=high
tenant students limit=24
)"},
    Chapter{"The morning rush: a gang of four nodes, small services, a slice of a GPU",
            R"(submit pretrain tenant=research tasks=4 gpus=8 required=spine priority=700 runtime=6h
submit chat tenant=product fraction=0.5 priority=900
submit search tenant=product fraction=0.25 priority=900
submit label tenant=product mig=1g.10gb runtime=3h
)"},
    Chapter{"Students bring an elastic sweep: it takes what is left, two tasks are enough",
            R"(at 10m
submit batch tenant=product gpus=8 runtime=1h preferred-domain=leaf-3
submit notebook tenant=students gpus=2 links=required min-bandwidth=400 runtime=1h preferred-domain=leaf-4
submit sweep tenant=students tasks=10 min=2 gpus=1 priority=300 preferred-domain=leaf-4
)"},
    Chapter{"What can never run is refused at once, with the reason",
            R"(at 20m
submit dream tenant=students tasks=4 gpus=8
submit giant tenant=research gpus=16
)"},
    Chapter{"A gang that needs one whole leaf waits, and is told when it will start",
            R"(at 30m
submit finetune tenant=research tasks=2 gpus=8 required=leaf runtime=2h can-preempt-others=no
)"},
    Chapter{"Short work may run in front of it; longer work would delay it, and waits",
            R"(at 40m
submit quick tenant=product gpus=2 runtime=15m can-preempt-others=no
submit report tenant=research gpus=6 priority=400 runtime=1h can-preempt-others=no
)"},
    Chapter{"Product asks for its guaranteed share: the sweep gives back just what is needed",
            R"(at 1h20m
submit launch tenant=product tasks=2 gpus=4 priority=2500 runtime=2h
)"},
    Chapter{"A GPU breaks under the big gang, and no other node of its spine is free",
            R"(at 2h
gpu n2:3 unhealthy
)"},
    Chapter{"The GPU is repaired: the gang gets its spine back, the borrower leaves",
            R"(at 2h30m
gpu n2:3 healthy
at 3h5m
)"},
    Chapter{"Node n8 is drained for maintenance: what runs there moves, the rest stays",
            R"(at 4h
drain n8
)"},
    Chapter{"Evening: n8 is back, work has ended, the sweep has grown again", R"(at 5h
uncordon n8
at 9h30m
)"},
};

}  // namespace gs
