// What TwoTables says of the stored runs.

const COUPLES = ["pairs", "others"]; // as a page shows them: the keys of its state are sorted

const meanOf = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
const each = (valueOf) => Object.fromEntries(COUPLES.map((couples) => [couples, valueOf(couples)]));

// Of each table of a kind at a stop: the cosines of pairs and of others, their means, and the distance of a pair as a
// multiple of the first one.
export function tablesOf(results, kind, stop) {
  return Object.entries(results.kinds[kind]).map(([name, table]) => {
    const dots = each((couples) => table[couples][stop]);
    return {
      name,
      dots,
      means: each((couples) => meanOf(dots[couples])),
      grown: table.distance[stop] / table.distance[0],
    };
  });
}
