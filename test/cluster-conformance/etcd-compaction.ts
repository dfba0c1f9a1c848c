/** Compacts an etcd to its current revision through its JSON gateway. */
export function etcdCompaction(url: string): () => Promise<void> {
  const post = async (path: string, body: object): Promise<{ header?: { revision?: string } }> => {
    const answer = await fetch(url + path, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd answered ${answer.status}: ${await answer.text()}`);
    return answer.json() as Promise<{ header?: { revision?: string } }>;
  };
  return async () => {
    const { header } = await post("/v3/kv/range", { key: "AA==" });
    const revision = header?.revision;
    if (revision === undefined) throw new Error("etcd did not tell its revision");
    await post("/v3/kv/compaction", { revision, physical: true });
  };
}
