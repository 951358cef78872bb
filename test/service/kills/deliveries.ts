/** The received webhooks by their ids, with all different bodies of each. */
export type Deliveries = ReadonlyMap<string, { readonly bodies: ReadonlySet<string>; readonly body: unknown }>
