/** A file of the page. */
export interface PageFile {
  /** Name of the file, with a hash of its content: `page-1a2b3c.js`. */
  readonly name: string
  readonly bytes: Uint8Array
}
