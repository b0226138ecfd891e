// Search runs in a worker, which browsers do not allow for pages that are opened as files. Here a hidden frame stands in
// for the worker. Material's offline plugin would load such a script from another host.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => (this.frame.onload = resolve));
      this.frame.srcdoc = `<script>postMessage = (data) => parent.postMessage(data, "*")</script><script src="${url}"></script>`;
      document.body.append(this.frame);
      window.addEventListener("message", (event) => {
        if (event.source === this.frame.contentWindow) {
          const message = new MessageEvent("message", { data: event.data });
          this.dispatchEvent(message);
          this.onmessage?.(message);
        }
      });
    }

    async postMessage(data) {
      await this.ready;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
