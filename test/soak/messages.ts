/** What the parent gives the pipeline's process, in its environment: a key does not belong on a command line. */
export interface PipelineSettings {
  readonly baseUrl: string
  readonly apiKey: string
  readonly webhookSecret: string
  readonly group: string
  readonly monitor: string
  /** The SQLite file of the sink, the checkpoint and the inbox. */
  readonly state: string
  /** The file to which a line is written for each event that the handler is given. */
  readonly handled: string
  /** Where webhooks come in. */
  readonly port: number
  readonly concurrency: number
  /** Whether the handler says that it is done before it is: what a soak is there to find. */
  readonly careless: boolean
}

/** What the pipeline's process tells its parent, time and again once it is at work. */
export interface PipelineReport {
  /** Events that were handled since it was started. */
  readonly count: number
  /** Its resident memory, at the most. */
  readonly rssMb: number
}
