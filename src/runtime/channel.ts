/**
 * Channel: how a mechanism reports what happened without knowing who listens. Publishing to nobody costs one
 * comparison. A listener that throws is reported as a process warning and stops nothing: telemetry must never
 * decide the fate of a request.
 */
export class Channel<Message> {
  #listeners: ((message: Message) => void)[] = []

  subscribe(listener: (message: Message) => void): () => void {
    this.#listeners = [...this.#listeners, listener]
    return () => {
      this.#listeners = this.#listeners.filter(other => other !== listener)
    }
  }

  publish(message: Message): void {
    for (const listener of this.#listeners) {
      try {
        listener(message)
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error), 'ChannelListenerWarning')
      }
    }
  }
}
