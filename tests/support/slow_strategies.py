"""The strategies by their definitions, with nothing but loops: what the fast ones must equal."""

from __future__ import annotations

from math import inf, prod


def intersect(a, b):
    return a[1] <= b[2] and b[1] <= a[2]


def gap(a, b):
    return inf if intersect(a, b) else b[1] - a[2] if a[2] < b[1] else a[1] - b[2]


def task_profiles(records):
    tasks = range(max((last for _, _, last in records), default=-1) + 1)
    profiles = [[i for i, r in enumerate(records) if r[1] <= task <= r[2]] for task in tasks]
    return [sorted(profile, key=lambda i: -records[i][0]) for profile in profiles]


def positional_maximums(records):
    sizes = [[records[i][0] for i in profile] for profile in task_profiles(records)]
    longest = max(map(len, sizes), default=0)
    return [max(s[k] for s in sizes if len(s) > k) for k in range(longest)]


def freed(in_use, first_task):
    """Remove and return the objects of {object: last task} that are unused from *first_task* on."""
    done = sorted((last, i) for i, last in in_use.items() if last < first_task)
    for _, i in done:
        del in_use[i]
    return [i for _, i in done]


def equality(records):
    ids, sizes, pool, in_use = [], [], [], {}
    for size, first, last in records:
        pool += freed(in_use, first)
        equal = [i for i in pool if sizes[i] == size]
        if equal:
            pool.remove(equal[-1])
        else:
            sizes.append(size)
        ids.append(equal[-1] if equal else len(sizes) - 1)
        in_use[ids[-1]] = last
    return ids, sizes


def lowest_equal(records):
    ids, sizes, lasts = [], [], []
    for size, first, last in records:
        free = [i for i in range(len(sizes)) if sizes[i] == size and lasts[i] < first]
        if not free:
            sizes.append(size)
            lasts.append(0)
        ids.append(free[0] if free else len(sizes) - 1)
        lasts[ids[-1]] = last
    return ids, sizes


def greedy_in_order(records, graph=None):
    ids, sizes, pool, in_use = [], [], [], {}
    for tensor, (size, first, last) in enumerate(records):
        pool = sorted([*pool, *freed(in_use, first)], key=lambda i: (sizes[i], i))
        best = None
        if graph is not None:
            for i in pool:
                users = [t for t, used in enumerate(ids) if used == i]
                better = best is None or abs(sizes[i] - size) < abs(sizes[best] - size)
                if better and tensor in graph[users[-1]]:
                    best = i
        elif pool:
            larger = [i for i in pool if sizes[i] >= size]
            smaller = [i for i in pool if sizes[i] < size]
            best = larger[0] if larger else smaller[-1]
            if smaller and larger and size - sizes[smaller[-1]] < sizes[larger[0]] - size:
                best = smaller[-1]
        if best is None:
            best = len(sizes)
            sizes.append(size)
        else:
            pool.remove(best)
        sizes[best] = max(sizes[best], size)
        ids.append(best)
        in_use[best] = last
    return ids, sizes


def greedy_in_order_by_dimensions(records):
    ids, sizes, pool, in_use = [], [], [], {}
    for size, first, last in records:
        pool += freed(in_use, first)
        best = None
        for i in pool:
            covers = all(a >= b for a, b in zip(sizes[i], size, strict=True))
            if covers and (best is None or prod(sizes[i]) < prod(sizes[best])):
                best = i
        if best is None:
            best = len(sizes)
            sizes.append(size)
        else:
            pool.remove(best)
        ids.append(best)
        in_use[best] = last
    return ids, sizes


def greedy_by_breadth(records):
    profiles = task_profiles(records)
    breadth = [sum(records[i][0] for i in profile) for profile in profiles]
    ids, sizes = [None] * len(records), []
    for task in sorted(range(len(profiles)), key=lambda task: (-breadth[task], task)):
        for tensor in profiles[task]:
            if ids[tensor] is not None:
                continue
            size, best = records[tensor][0], None
            for i in range(len(sizes)):
                users = [records[t] for t, used in enumerate(ids) if used == i]
                if any(intersect(records[tensor], user) for user in users):
                    continue
                if (
                    best is None
                    or (sizes[best] < size and sizes[i] > sizes[best])
                    or (sizes[best] >= size and size <= sizes[i] < sizes[best])
                ):
                    best = i
            if best is None:
                best = len(sizes)
                sizes.append(size)
            ids[tensor] = best
            sizes[best] = max(sizes[best], size)
    return ids, sizes


class _Candidate:
    def __init__(self, record, maximums):
        self.size = record[0]
        self.position = 0
        while self.position + 1 < len(maximums) and maximums[self.position + 1] >= self.size:
            self.position += 1
        self.distances, self.distance, self.object = [], inf, None


def size_distance_priority(records):
    maximums = positional_maximums(records)
    waiting = {i: _Candidate(record, maximums) for i, record in enumerate(records)}
    ids, sizes = [None] * len(records), []
    while waiting:
        chosen = min(
            waiting, key=lambda i: (waiting[i].position, waiting[i].distance, -waiting[i].size, i)
        )
        candidate = waiting.pop(chosen)
        target = candidate.object if candidate.distance < inf else len(sizes)
        if target == len(sizes):
            sizes.append(0)
            for other in waiting.values():
                other.distances.append(None)
        ids[chosen] = target
        sizes[target] = max(sizes[target], candidate.size)
        for i, other in waiting.items():
            known, new = other.distances[target], gap(records[i], records[chosen])
            if known == inf:
                continue
            other.distances[target] = new if known is None or new == inf else min(known, new)
            if new == inf and other.object == target:
                other.distance = min(other.distances)
                other.object = other.distances.index(other.distance)
            if new < other.distance:
                other.distance, other.object = new, target
    return ids, sizes


def greedy_by_size(records, alignment):
    offsets, placed = [0] * len(records), []
    for tensor in sorted(range(len(records)), key=lambda i: -records[i][0]):
        size, best, smallest, end = records[tensor][0], None, inf, 0
        for other in placed:
            if not intersect(records[tensor], records[other]):
                continue
            space = offsets[other] - end
            if space >= size and space < smallest:
                best, smallest = end, space
            end = max(end, -(-(offsets[other] + records[other][0]) // alignment) * alignment)
        offsets[tensor] = end if best is None else best
        later = [k for k, other in enumerate(placed) if offsets[other] > offsets[tensor]]
        placed.insert(later[0] if later else len(placed), tensor)
    return offsets, max((o + r[0] for o, r in zip(offsets, records, strict=True)), default=0)


def min_cost_flow(records):
    """Plan by successive cheapest paths over explicit edges; slow but simple."""
    n = len(records)
    source, sink = 2 * n, 2 * n + 1
    edges, edges_from = [], [[] for _ in range(2 * n + 2)]

    def add_edge(start, end, cost):
        for edge in ([start, end, 1, cost], [end, start, 0, -cost]):
            edges_from[edge[0]].append(len(edges))
            edges.append(edge)

    finished, in_use = [], {}
    for i, (size, first, last) in enumerate(records):
        finished += freed(in_use, first)
        in_use[i] = last
        add_edge(source, i, 0)
        add_edge(n + i, sink, 0)
        add_edge(source, n + i, size)
        for j in finished:
            add_edge(j, n + i, max(0, size - records[j][0]))
    while True:
        distance = [inf] * (2 * n + 2)
        distance[source], edge_before = 0, {}
        queue = [source]
        while queue:
            following = []
            for vertex in queue:
                for number in edges_from[vertex]:
                    _, end, capacity, cost = edges[number]
                    if capacity and distance[vertex] + cost < distance[end]:
                        distance[end] = distance[vertex] + cost
                        edge_before[end] = number
                        if end not in following:
                            following.append(end)
            queue = following
        if sink not in edge_before:
            break
        vertex = sink
        while vertex != source:
            edges[edge_before[vertex]][2] -= 1
            edges[edge_before[vertex] ^ 1][2] += 1
            vertex = edges[edge_before[vertex]][0]
    ids, sizes = [None] * n, []

    def chain(tensor):
        ids[tensor] = len(sizes)
        largest = records[tensor][0]
        for number in edges_from[tensor]:
            _, end, capacity, _ = edges[number]
            if not capacity and n <= end < 2 * n and ids[end - n] is None:
                largest = max(largest, chain(end - n))
        return largest

    for number in edges_from[source]:
        _, end, capacity, _ = edges[number]
        if not capacity and n <= end < 2 * n:
            sizes.append(chain(end - n))
    return ids, sizes


def reallocation_graph(dependencies):
    def behind(start):
        found, new = set(), {start}
        while new:
            new = {t for v in new for t in dependencies[v]} - found
            found |= new
        return found - {start}

    pairs = set()
    for root, children in enumerate(dependencies):
        if children:
            for other in set.intersection(*(behind(child) for child in children)):
                pairs |= {(root, other), (other, root)}
    return [sorted(b for a, b in pairs if a == tensor) for tensor in range(len(dependencies))]
