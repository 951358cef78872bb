import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions, checkText } from '../../protocol/check.ts'

/** A consumer or a process, by its name. */
export type LogReader =
  | { readonly consumer: string; readonly process?: undefined }
  | { readonly process: string; readonly consumer?: undefined }

/** The name of a reader in the store. */
export function readerName(reader: LogReader): string {
  checkOptions('reader', reader ?? null, ['consumer', 'process'])
  const { consumer, process } = reader
  if (consumer === undefined) {
    checkText('reader.process', process)
    return `process:${process}`
  }
  if (process !== undefined) throw new ArgumentError('reader', 'a consumer or a process, not both', reader)
  checkText('reader.consumer', consumer)
  return `consumer:${consumer}`
}
