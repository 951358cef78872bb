/** Settings of the pipeline's process, in its environment: a key must not be on a command line. */
export interface PipelineSettings {
  readonly baseUrl: string
  readonly apiKey: string
  readonly webhookSecret: string
  readonly group: string
  readonly monitor: string
  /** The SQLite file of the sink, the checkpoint and the inbox. */
  readonly state: string
  /** The file with a line for each call of the handler. */
  readonly handled: string
  /** The port for webhooks. */
  readonly port: number
  readonly concurrency: number
  /** Whether the handler reports completion too early, which a soak must detect. */
  readonly careless: boolean
}

/** A report of the pipeline's process, sent repeatedly while it runs. */
export interface PipelineReport {
  /** Number of events handled since its start. */
  readonly count: number
  /** Maximum resident memory. */
  readonly rssMb: number
}
