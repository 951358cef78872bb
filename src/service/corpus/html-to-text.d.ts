/** The API of html-to-text that the corpus uses; the package has no types. */
declare module 'html-to-text' {
  interface SelectorDefinition {
    readonly selector: string
    readonly format?: string
    readonly options?: Readonly<Record<string, unknown>>
  }

  interface HtmlToTextOptions {
    readonly wordwrap?: number | false
    readonly selectors?: readonly SelectorDefinition[]
    readonly limits?: { readonly maxInputLength?: number; readonly maxDepth?: number }
  }

  /** Creates a converter that is reused for many documents. */
  export function compile(options?: HtmlToTextOptions): (html: string) => string
}
