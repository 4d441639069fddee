"""Components of rows that are linked by equal keys."""

from datakit.kernels import kernel


@kernel
def join(links, first):  # type: ignore[no-untyped-def]
    """Union-find: join the two rows of each link, int64 (links, 2). `first` int64 (rows,) holds each row's own number,
    and becomes the smallest row of its component. A parent is never larger than its child, so one ascending pass
    flattens.
    """
    for k in range(len(links)):
        a, b = links[k]
        while first[a] != a:
            first[a] = first[first[a]]
            a = first[a]
        while first[b] != b:
            first[b] = first[first[b]]
            b = first[b]
        first[max(a, b)] = min(a, b)
    for row in range(len(first)):
        first[row] = first[first[row]]
