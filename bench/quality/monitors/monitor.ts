/** Where a monitor reports something. */
export interface Report {
  /** From 1. */
  readonly day: number
  /** The path of the document in `folder/`. */
  readonly document: string
}

/** A change that a monitor is to report. */
interface ExpectedReport extends Report {
  /** A part of the new statement. */
  readonly statement: string
}

/** An item of `bench/quality/monitors/`: a monitor and what it is to report in the month of `changes.yaml`. */
export interface LabelledMonitor {
  /** What the monitor is about; it selects the half. */
  readonly subject: string
  readonly query: string
  /** Every other report is wrong. */
  readonly expect: readonly ExpectedReport[]
  /** Reports that people would judge differently: they count neither as right nor as wrong. Default: none. */
  readonly tolerate?: readonly Report[]
}
