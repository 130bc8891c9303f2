// A Worker whose script runs in a hidden frame: browsers run no worker from disk.
if (location.protocol === 'file:') window.Worker = window.IFrameWorker = class extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement('iframe');
    frame.hidden = true;
    document.body.append(frame);
    const inside = frame.contentWindow;
    inside.postMessage = data => this.dispatchEvent(new MessageEvent('message', { data }));
    const script = inside.document.createElement('script');
    this.ready = new Promise(done => script.addEventListener('load', done));
    script.src = url;
    inside.document.body.append(script);
    this.inside = inside;
  }
  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(
      new this.inside.MessageEvent('message', { data })));
  }
};
