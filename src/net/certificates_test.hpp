// Certificates for tests: an authority of their own, and what it signs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace gs::testing_certificates {

struct Identity {
  std::string certificate, key;  // PEM
};

class Authority {
 public:
  Authority() : key_(EVP_EC_gen("P-256")) {
    certificate_ = made("test authority", key_, {{NID_basic_constraints, "critical,CA:TRUE"}});
  }
  ~Authority() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  std::string certificate() const { return pem(certificate_); }

  // `names` as OpenSSL writes them: "DNS:localhost,IP:127.0.0.1"; empty: none.
  Identity sign(const std::string& subject, const std::string& names) const {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    std::vector<std::pair<int, std::string>> extensions;
    if (!names.empty()) extensions.emplace_back(NID_subject_alt_name, names);
    X509* certificate = made(subject, key, extensions);
    BIO* out = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    Identity identity{pem(certificate), text(out)};
    X509_free(certificate);
    EVP_PKEY_free(key);
    return identity;
  }

 private:
  X509* made(const std::string& subject, EVP_PKEY* key,
             const std::vector<std::pair<int, std::string>>& extensions) const {
    X509* out = X509_new();
    X509_set_version(out, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(out), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(out), -3600);
    X509_gmtime_adj(X509_getm_notAfter(out), 86'400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(out), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
    X509* issuer = certificate_ == nullptr ? out : certificate_;
    X509_set_issuer_name(out, X509_get_subject_name(issuer));
    X509_set_pubkey(out, key);
    for (const auto& [id, value] : extensions) {
      X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str());
      X509_add_ext(out, extension, -1);
      X509_EXTENSION_free(extension);
    }
    X509_sign(out, key_, EVP_sha256());
    return out;
  }
  static std::string text(BIO* from) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(from, &data);
    std::string out(data, static_cast<std::size_t>(size));
    BIO_free(from);
    return out;
  }
  static std::string pem(X509* certificate) {
    BIO* out = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(out, certificate);
    return text(out);
  }

  EVP_PKEY* key_;
  X509* certificate_ = nullptr;
  mutable long serial_ = 0;
};

}  // namespace gs::testing_certificates
