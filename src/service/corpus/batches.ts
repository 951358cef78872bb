import type { FoundFile } from './files.ts'

/** Files that are read and stored together, at the most. */
const MOST_FILES = 64
/** Bytes that are read and stored together, at the most, unless one file alone has more: storing blocks the process. */
const MOST_BYTES = 2 ** 20

/** Takes files together, in their order, to be read and stored at once. */
export function* batchesOf<File extends Pick<FoundFile, 'size'>>(files: readonly File[]): Generator<File[]> {
  let batch: File[] = []
  let bytes = 0
  for (const file of files) {
    if (batch.length > 0 && (batch.length === MOST_FILES || bytes + file.size > MOST_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(file)
    bytes += file.size
  }
  if (batch.length > 0) yield batch
}
